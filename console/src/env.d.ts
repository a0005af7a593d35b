declare module "*.css";
declare module "*.json?url" {
  const address: string;
  export default address;
}
declare module "*?worker&url" {
  const address: string;
  export default address;
}
