// VitePress announces its search as a button with options, which hold links: screen readers cannot reach controls in controls. Here it is
// a dialog with a list of links.
const roles = [
  [".VPLocalSearchBox[role=button]", "dialog"],
  [".VPLocalSearchBox [role=listbox]", "list"],
  [".VPLocalSearchBox [role=option]", "listitem"],
  [".VPLocalSearchBox kbd[aria-label]:not([role])", "img"],
] as const;

function mend(): void {
  const box = document.querySelector(".VPLocalSearchBox");
  if (!box) return;
  for (const [selector, role] of roles) for (const e of document.querySelectorAll(selector)) e.setAttribute("role", role);
  for (const name of ["aria-expanded", "aria-haspopup", "aria-owns"]) if (box.hasAttribute(name)) box.removeAttribute(name);
  for (const e of box.querySelectorAll("li[aria-selected]")) e.removeAttribute("aria-selected");
  for (const e of box.querySelectorAll("a.result[aria-label]")) e.removeAttribute("aria-label");
  for (const e of box.querySelectorAll("input[aria-activedescendant]")) e.removeAttribute("aria-activedescendant");
}

export function plainSearch(): void {
  if (typeof document === "undefined") return; // the page is rendered on a server
  new MutationObserver(mend).observe(document.body, { subtree: true, childList: true, attributes: true });
}
