// SPDX-License-Identifier: Apache-2.0
// Reads the data of the daemon, from the server of this page.

const kPatienceMs = 4000;

// Throws an Error that says why there is no answer.
export async function ask(path) {
  let response;
  try {
    response = await fetch(`data/${path}`, {
      credentials: 'omit', cache: 'no-store', signal: AbortSignal.timeout(kPatienceMs)});
  } catch {
    throw new Error('The daemon does not answer.');
  }
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}

export async function askAll() {
  const [machine, status, containers, pools, history] =
    await Promise.all(['node', 'status', 'containers', 'pools', 'history'].map(ask));
  return {machine, status, containers, pools, history};
}

// Gets what is used, or undefined where that is not known (yet).
export async function askUse() {
  try {
    // The first answer may have to wait for a sample, the others then need not.
    const containers = await ask('top');
    const [nodes, cpus] = await Promise.all(['nodes', 'busy'].map(ask));
    return {containers, nodes, cpus};
  } catch {
    return undefined;
  }
}

export const explain = (what) => ask(`explain?what=${encodeURIComponent(what)}`);
