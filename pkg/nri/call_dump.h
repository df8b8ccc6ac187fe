// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pkg/base/status.h"
#include "pkg/dump/dumper.h"
#include "pkg/ttrpc/server.h"

namespace resmgr::nri {

// Shows a plugin's calls to the dumper, in the same form as CRI calls. A call that the dumper's
// rules exclude costs only the check of these rules. Loop's thread only.
class CallDump {
 public:
  using Answer = StatusOr<std::string>;

  // The dumper outlives this object; nullptr: nothing is shown.
  explicit CallDump(dump::Dumper* dumper) : dumper_(dumper) {}

  // Wraps a method, so that its calls are shown under `path`:
  // "/nri.pkg.api.v1alpha1.Plugin/Configure".
  ttrpc::Server::Method Show(std::string path, ttrpc::Server::Method method);
  // Wraps the `done` of an outgoing call that begins now, so that the call and its answer are
  // shown.
  std::function<void(Answer)> Show(std::string path, const std::string& payload,
                                   std::function<void(Answer)> done);

 private:
  // A call that is shown.
  class Shown;

  // Shows the request; nullptr if the rules exclude the call.
  std::shared_ptr<Shown> Begin(std::string path, const std::string& payload, bool intercepted);

  dump::Dumper* const dumper_;
  uint64_t last_call_ = 0;
};

}  // namespace resmgr::nri
