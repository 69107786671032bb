// A button on each block of text copies it: of commands with their output, the commands alone.
"use strict";

/** What a reader wants of a block: what to type, without `$ ` and without what is printed. */
function copied(code) {
  const text = code.textContent;
  if (!code.classList.contains("language-console")) return text;
  const typed = text.split("\n").filter((line) => line.startsWith("$ "));
  return typed.map((line) => `${line.slice(2)}\n`).join("");
}

// Browsers give no clipboard to pages that came over plain HTTP from another machine.
if (navigator.clipboard) {
  for (const code of document.querySelectorAll("pre > code")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(copied(code));
      button.textContent = "Copied";
    });
    code.parentElement.append(button);
  }
}
