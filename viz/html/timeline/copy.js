// A button next to every command on the page, which copies it.

async function copyText(text, source) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // not allowed here: copy through the selection instead
    getSelection().selectAllChildren(source);
    document.execCommand("copy");
  }
}

function addCopyButtons() {
  for (const code of document.querySelectorAll("code.copy")) {
    const button = element("button", { type: "button", class: "copy" }, "Copy");
    const said = element("span", { class: "note", "aria-live": "polite" });
    button.addEventListener("click", async () => {
      await copyText(code.textContent, code);
      said.textContent = "copied";
      setTimeout(() => { said.textContent = ""; }, 2000);
    });
    code.after(" ", button, " ", said);
  }
}
