// What the engine has and a step cannot have: evaluated before anything else in the component.
//
// A module's top level runs once, when the component is built, and what it sees is part of the
// component for good. So random numbers and timers are refused there. Later, a random number is a
// function of the call that asks for it, and of nothing that was drawn before.

let running = false;

// From here on, calls of a step are made.
export function begin() {
  running = true;
}

// Throws at the top level of a module.
export function inStep(name) {
  if (!running) {
    throw new Error(
      `${name} at the top level of a module would be called once, when the component is built; ` +
        "call it in fold or decide",
    );
  }
}

function onlyInSteps(target, name, shown, replacement) {
  const original = replacement ?? target[name].bind(target);
  target[name] = (...parameters) => {
    inStep(shown);
    return original(...parameters);
  };
}

const draw = crypto.getRandomValues.bind(crypto);
const words = new Uint32Array(2);

onlyInSteps(Math, "random", "Math.random()", () => {
  const [high, low] = draw(words);
  return ((high >>> 5) * 0x4000000 + (low >>> 6)) / 0x20000000000000;
});
onlyInSteps(crypto, "getRandomValues", "crypto.getRandomValues()");
onlyInSteps(crypto, "randomUUID", "crypto.randomUUID()");
onlyInSteps(globalThis, "setTimeout", "setTimeout()");
onlyInSteps(globalThis, "setInterval", "setInterval()");
onlyInSteps(globalThis, "fetch", "fetch()");

// The engine's own has the time of the build in it.
Object.defineProperties(performance, {
  timeOrigin: { value: 0 },
  now: { value: () => Date.now() },
});
