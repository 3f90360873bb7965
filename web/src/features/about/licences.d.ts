declare module "virtual:licences" {
  export const all: { name: string; version: string; licence: string; text: string }[];
}
