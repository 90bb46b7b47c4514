/** The interface as each generated client offers it. Its calls are made with the generated types. */
export interface PlantClient {
  create(plant: NewPlant, fields?: Field[]): Promise<Outcome<Plant>>;
  list(query?: ListQuery): Promise<Outcome<Plant[]>>;
  find(id: number, fields?: Field[]): Promise<Outcome<Plant>>;
  delete(id: number): Promise<Outcome<unknown>>;
  livez(): Promise<Outcome<Health>>;
}

export type ClientMaker = (address: string, token: string) => PlantClient;

export type Field = 'id' | 'name' | 'tag';

export interface NewPlant {
  name: string;
  id?: number;
  tag?: string;
}

export interface ListQuery {
  limit?: number;
  after?: number;
  tag?: string;
  fields?: Field[];
}

export interface Plant {
  id?: number | undefined;
  name?: string | undefined;
  tag?: string | undefined;
}

export interface Health {
  status: 'ok';
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  errors?:
    { pointer?: string | undefined; parameter?: string | undefined; detail: string }[] | undefined;
}

/** What the client makes of a response: its data or its problem. */
export interface Outcome<Data> {
  status: number | undefined;
  data: Data | undefined;
  problem: Problem | undefined;
}
