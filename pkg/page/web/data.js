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
  const [status, containers, pools, history] =
    await Promise.all(['status', 'containers', 'pools', 'history'].map(ask));
  return {status, containers, pools, history};
}

export const explain = (what) => ask(`explain?what=${encodeURIComponent(what)}`);
