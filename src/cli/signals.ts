const terminationSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Calls `handle` at each signal that asks the process to end, until the result is disposed. */
export function onSignal(handle: (signal: NodeJS.Signals) => void): Disposable {
  for (const signal of terminationSignals) process.on(signal, handle);
  return {
    [Symbol.dispose]() {
      for (const signal of terminationSignals) process.off(signal, handle);
    },
  };
}
