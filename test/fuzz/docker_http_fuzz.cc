// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/docker/exchange.h"
#include "pkg/docker/request_target.h"
#include "test/fuzz/checks.h"

namespace {

using resmgr::docker::Exchange;
using resmgr::fuzz::Check;

struct Outcome {
  size_t requests = 0;  // bytes that passed
  size_t replies = 0;
  bool refused = false;
  bool operator==(const Outcome&) const = default;
};

// A connection on which each side's bytes arrive in pieces of this size.
Outcome Play(std::string_view client, std::string_view engine, size_t step) {
  Exchange exchange;
  Outcome outcome;
  size_t sent = 0;
  size_t answered = 0;
  for (bool progress = true; progress;) {
    progress = sent < client.size() || answered < engine.size();
    sent = std::min(client.size(), sent + step);
    while (true) {
      const auto passing =
          exchange.FromClient(client.substr(outcome.requests, sent - outcome.requests));
      if (!passing.ok()) {
        outcome.refused = true;
        return outcome;
      }
      Check(*passing <= sent - outcome.requests);
      outcome.requests += *passing;
      if (*passing == 0) break;
      progress = true;
    }
    // dockerd answers what has arrived as a whole.
    if (sent < client.size()) continue;
    answered = std::min(engine.size(), answered + step);
    const auto passing =
        exchange.FromEngine(engine.substr(outcome.replies, answered - outcome.replies));
    if (!passing.ok()) {
      outcome.refused = true;
      return outcome;
    }
    Check(*passing <= answered - outcome.replies);
    outcome.replies += *passing;
    progress |= *passing > 0;
  }
  (void)exchange.EngineEnds();
  return outcome;
}

}  // namespace

// The client's bytes, then "\n====\n" and dockerd's.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kBetween = "\n====\n";
  const size_t cut = std::min(input.find(kBetween), size);
  const std::string_view client = input.substr(0, cut);
  if (const auto target = resmgr::docker::ReadTarget("POST", client)) {
    const bool creates = target->action == resmgr::docker::Action::kCreate;
    Check(creates == target->container.empty());
  }
  const std::string_view engine = input.substr(std::min(size, cut + kBetween.size()));
  // A refused request may have let a whole first part pass or not; all else is the same, however
  // the bytes arrive.
  const Outcome whole = Play(client, engine, std::max<size_t>(size, 1));
  for (const size_t step : {size_t{1}, size_t{7}}) {
    const Outcome pieces = Play(client, engine, step);
    Check(pieces.refused == whole.refused);
    Check(whole.refused || pieces == whole);
  }
  return 0;
}
