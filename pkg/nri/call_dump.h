// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/dump/dumper.h"
#include "pkg/ttrpc/server.h"

namespace resmgr::nri {

// Shows a plugin's calls to the dumper, in the form that CRI calls have there. Costs a look at the
// rules for a call that they do not want. Loop's thread only.
class CallDump {
 public:
  using Answer = StatusOr<std::string>;

  // The dumper outlives it; nullptr: nothing is shown.
  explicit CallDump(dump::Dumper* dumper) : dumper_(dumper) {}

  // The same method, its calls shown under this path: "/nri.pkg.api.v1alpha1.Plugin/Configure".
  ttrpc::Server::Method Show(std::string path, ttrpc::Server::Method method);
  // A call of ours that begins now: the same `done`, which shows the answer as well.
  std::function<void(Answer)> Show(std::string path, const std::string& payload,
                                   std::function<void(Answer)> done);

 private:
  // A call that is shown.
  class Shown;

  // Shows the request; nullptr where the rules do not want the call.
  std::shared_ptr<Shown> Begin(std::string path, const std::string& payload, bool intercepted);

  dump::Dumper* const dumper_;
  uint64_t last_call_ = 0;
};

}  // namespace resmgr::nri
