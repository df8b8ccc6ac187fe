// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/call_counts.h"

#include "pkg/cri/known_methods.h"

namespace resmgr {

CallCounts::CallCounts(Metrics* metrics) : metrics_(metrics) {
  // The last one counts unknown methods.
  if (on()) counters_.resize(KnownMethodPaths().size() + 1);
}

void CallCounts::End(const Method& method, bool intercepted, int grpc_code,
                     const CallClock& clock) {
  if (!on()) return;
  CallCounter*& counter = counters_[method.place][intercepted ? 1 : 0];
  if (counter == nullptr) {
    counter = &metrics_->Calls(method.path, intercepted ? Metrics::CallKind::kIntercepted
                                                        : Metrics::CallKind::kPassthrough);
  }
  counter->Count(grpc_code);
  if (!clock.begun()) return;
  metrics_->CountInFlight(-1);
  // A call that lasts as long as its client listens does not measure speed.
  if (method.endless) return;
  const CallClock::Spent spent = clock.Read();
  counter->Took(spent.ours, spent.runtime);
}

}  // namespace resmgr
