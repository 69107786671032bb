// Words for what waits, and addresses of nested stacks.

/** Why a resource is as it is, and what would release it; "" where there is nothing to say. */
export function waitsFor(resource, reason) {
  if (!reason) return resource.reason ?? "";
  return [reason.reason, reason.released_by && `released by: ${reason.released_by}`].filter(Boolean).join("; ");
}

/** The page of the stack that a resource stands for; null where there is none. */
export function nestedAddress(project, { nested }) {
  if (!nested?.stack_id) return null;
  return `#/${encodeURIComponent(project)}/stacks/${encodeURIComponent(nested.stack_name)}/${encodeURIComponent(nested.stack_id)}`;
}
