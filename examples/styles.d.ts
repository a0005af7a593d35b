// Bundlers take style sheets as modules.
declare module "*.css";
