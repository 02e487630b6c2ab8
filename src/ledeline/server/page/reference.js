// A button beside each example that sends it and shows the answer. The page needs none of it.

const TOKEN_KEY = "ledeline-token"; // as in page.js: kept until the tab is closed

function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

function kept() {
  try {
    return sessionStorage.getItem(TOKEN_KEY) ?? "";
  } catch {
    return ""; // the browser keeps nothing
  }
}

function keep(token) {
  try {
    sessionStorage.setItem(TOKEN_KEY, token);
  } catch {
    // It stays in its field.
  }
}

function labelled(name, text, properties) {
  const field = element(name, properties);
  const label = element("label", { textContent: text });
  label.append(field);
  return [label, field];
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // not JSON
  }
}

async function send(method, path, token, body) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    const answer = await fetch(path, { method, headers, body });
    return `${answer.status}\n${pretty(await answer.text())}`;
  } catch (error) {
    return `No answer: ${error.message}`;
  }
}

function addTrial(example) {
  const { method, path, body, token } = example.dataset;
  if (path.includes("{")) return; // it needs a value first
  const trial = element("form", { className: "trial" });
  const button = element("button", { textContent: "Try it" });
  const shown = element("pre", { hidden: true });
  shown.setAttribute("role", "status");
  let bodyField, tokenField;
  if (token) {
    const [label, field] = labelled("input", "Token", { type: "password", autocomplete: "off" });
    field.value = kept();
    tokenField = field;
    trial.append(label);
  }
  if (body !== undefined) {
    const [label, field] = labelled("textarea", "Body", { rows: 6, spellcheck: false });
    field.value = body;
    bodyField = field;
    trial.append(label);
  }
  trial.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    const secret = tokenField && (tokenField.value.trim() || kept());
    if (secret) keep(secret);
    shown.textContent = await send(method, path, secret, bodyField?.value);
    shown.hidden = false;
    button.disabled = false;
  });
  trial.append(button, shown);
  example.append(trial);
}

document.querySelectorAll(".example").forEach(addTrial);
