-- The requests of every workload, and a line of JSON about how they were answered.
--   wrk ... -s wrk.lua http://HOST:PORT -- REQUESTS TOKENS_FILE PLANTS FODDER_FIRST_ID SEED
-- Plant ID belongs to the user ID % users + 1 (plants.ts); users are counted from 1.

local heads = {} -- by user: the end of a request line and all headers that each request has
local users = 0
local plants = 0
local fodder_id = 0
local created = 0

local page_plants = 20
local active_users = 1000 -- who sends the requests, however many more have plants

local function someone()
  return heads[math.random(math.min(users, active_users))]
end

local function list()
  return "GET /plants?limit=" .. page_plants .. someone() .. "\r\n"
end

local function list_of_any()
  return "GET /plants?limit=" .. page_plants .. heads[math.random(users)] .. "\r\n"
end

-- After this id follow `page_plants` times as many plants as there are users: a full page of each.
local function page()
  local after = math.random(0, plants - page_plants * users)
  return "GET /plants?limit=" .. page_plants .. "&after=" .. after .. someone() .. "\r\n"
end

local function create()
  created = created + 1
  local body = '{"name":"Monstera deliciosa ' .. created .. '","tag":"bed ' .. created % 20 .. '"}'
  return "POST /plants" .. someone()
    .. "Content-Type: application/json\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
end

-- Each id once. Where the fodder does not last, the answer is 404, and the round has failed.
local function delete()
  local id = fodder_id
  fodder_id = fodder_id + 1
  return "DELETE /plants/" .. id .. heads[id % users + 1] .. "\r\n"
end

local function mix()
  local percent = math.random(100)
  if percent <= 90 then return list() end
  if percent <= 98 then return create() end
  return delete()
end

local makers = { list = list, list_of_any = list_of_any, page = page, create = create, delete = delete, mix = mix }

function init(args)
  request = makers[args[1]]
  for token in io.lines(args[2]) do
    heads[#heads + 1] = " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " .. token .. "\r\n"
  end
  users = #heads
  plants = tonumber(args[3])
  fodder_id = tonumber(args[4])
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
