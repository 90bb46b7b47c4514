-- Sends the requests of every workload, and prints the results as a line of JSON.
--   wrk ... -s wrk.lua http://HOST:PORT -- REQUESTS TOKENS_FILE PLANTS DISPOSABLE_FIRST_ID SEED
-- Plant ID belongs to user ID % users + 1 (plants.ts). Users are numbered from 1.

local heads = {} -- by user: the end of the request line, and the headers that all requests have
local users = 0
local plants = 0
local disposable_id = 0
local created = 0

local page_plants = 20
local active_users = 1000 -- users that send requests; others only have plants

local function random_user()
  return heads[math.random(math.min(users, active_users))]
end

local function list()
  return "GET /plants?limit=" .. page_plants .. random_user() .. "\r\n"
end

-- At least `page_plants` plants of each user follow this cursor, so every page is full.
local function page()
  local after = math.random(0, plants - page_plants * users)
  return "GET /plants?limit=" .. page_plants .. "&after=" .. after .. random_user() .. "\r\n"
end

local function create()
  created = created + 1
  local body = '{"name":"Monstera deliciosa ' .. created .. '","tag":"bed ' .. created % 20 .. '"}'
  return "POST /plants" .. random_user()
    .. "Content-Type: application/json\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
end

-- No plant has the name before: a service can leave out a change to what is there.
local function update()
  created = created + 1
  local id = math.random(plants)
  local body = '{"name":"Monstera deliciosa ' .. created .. '"}'
  return "PATCH /plants/" .. id .. heads[id % users + 1]
    .. "Content-Type: application/json\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
end

-- Deletes each id once. If the disposable plants run out, the response is 404 and the round fails.
local function delete()
  local id = disposable_id
  disposable_id = disposable_id + 1
  return "DELETE /plants/" .. id .. heads[id % users + 1] .. "\r\n"
end

local kinds = { list = list, page = page, create = create, update = update, delete = delete }

function init(args)
  request = kinds[args[1]]
  for token in io.lines(args[2]) do
    heads[#heads + 1] = " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " .. token .. "\r\n"
  end
  users = #heads
  plants = tonumber(args[3])
  disposable_id = tonumber(args[4])
  math.randomseed(tonumber(args[5]))
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.timeout, errors.status))
end
