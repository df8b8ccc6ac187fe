// SPDX-License-Identifier: Apache-2.0
#include "test/bench/soak.h"

#include <chrono>

#include "test/bench/process_stats.h"
#include "test/bench/scenario.h"
#include "test/support/fake_runtime/generic_server.h"

namespace resmgr::bench {

namespace {

constexpr int kConcurrency = 32;

// One turn of a mix like a busy node's: 1000 calls.
constexpr int kVersions = 600;
constexpr int kLists = 100;
constexpr int kContainers = 150;  // each created and removed
constexpr int kTurn = kVersions + kLists + 2 * kContainers;
constexpr int kListSize = 200;

void Count(const LoadResult& from, SoakResult* into) {
  into->calls += static_cast<int64_t>(from.latencies.size());
  if (into->errors == 0) into->first_error = from.first_error;
  into->errors += from.errors;
}

}  // namespace

StatusOr<SoakResult> Soak(Testbed& bed, int64_t calls) {
  Candidate& daemon = bed.at(Testbed::kDaemon);
  LoadClient& client = *daemon.client;
  SoakResult result;
  RESMGR_RETURN_IF_ERROR(RunPod(client));
  const auto start = std::chrono::steady_clock::now();
  const int64_t turns = (calls + kTurn - 1) / kTurn;
  int number = 0;
  for (int64_t turn = 0; turn < turns; ++turn) {
    const auto run = [&](const std::string& method, int count, auto request, bool keep = false) {
      LoadResult load = client.Run({.path = RuntimePath(method),
                                    .calls = count,
                                    .concurrency = kConcurrency,
                                    .request = request,
                                    .keep_replies = keep});
      Count(load, &result);
      return load;
    };
    run("Version", kVersions, [](int) { return test::ToBuffer(""); });
    run("ListContainers", kLists, [](int) { return ListRequest(kListSize); });
    const LoadResult created = run(
        "CreateContainer", kContainers, [&](int i) { return CreateRequest(number + i); }, true);
    number += kContainers;
    if (created.errors == 0) RESMGR_RETURN_IF_ERROR(RemoveContainers(client, created.replies));
    result.calls += kContainers;
    if (turn == turns / 10) result.rss_early_kib = RssKib(daemon.process->pid());
  }
  result.rss_late_kib = RssKib(daemon.process->pid());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace resmgr::bench
