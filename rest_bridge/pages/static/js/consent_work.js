// Does the work that a visitor token takes after several from one network, and sends the form when it is done.

import { solve } from "./work.js";

const form = document.querySelector("#work");
const button = form.querySelector("button");
const status = form.querySelector("[role=status]");
const { challenge, bits } = form.dataset;

button.disabled = true;
form.elements.solution.value = await solve(challenge, Number(bits), (tries) => {
  status.textContent = `Working: ${tries.toLocaleString("en")} of about ${(2 ** bits).toLocaleString("en")} tries.`;
});
button.disabled = false;
form.requestSubmit(button);
