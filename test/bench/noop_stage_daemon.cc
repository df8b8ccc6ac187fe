// SPDX-License-Identifier: Apache-2.0
// cri-resmgr with a stage behind the policy that looks at every call and changes nothing: what a
// stage costs. For resmgr-bench's --daemon.
#include <csignal>
#include <memory>

#include "cmd/cri-resmgr/flags.h"
#include "cmd/cri-resmgr/run_daemon.h"
#include "cmd/cri-resmgr/wiring.h"
#include "pkg/base/recycled.h"
#include "pkg/node/policy_setup.h"
#include "pkg/node/relay_door.h"
#include "pkg/node/run_node.h"
#include "pkg/node/startup.h"
#include "pkg/pipeline/stage.h"
#include "policies/builtin_policies.h"

namespace resmgr {
namespace {

class NoopCall final : public StageCall, public Recycled<NoopCall> {
 public:
  using StageCall::StageCall;
};

class NoopStage final : public Stage {
 public:
  NoopStage() : Stage({.name = "noop", .operations = OperationSet::All()}) {}

  std::unique_ptr<StageCall> Begin(const Request&) override {
    return std::make_unique<NoopCall>(*this);
  }
};

int Main(int argc, const char* const* argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const PolicyRegistry policies = BuiltinPolicies();
  const auto flags = ParseFlags(argc, argv, ChecksWith(policies));
  if (!flags.ok()) return ExitCodeOf(flags.status());
  NoopStage stage;
  NodeOptions options = OptionsOf(*flags, policies, "noop-stage");
  options.door = RelayDoorFactory({.relay_socket = flags->relay_socket,
                                   .runtime_socket = flags->runtime_socket,
                                   .image_socket = flags->runtime_socket,
                                   .stages = {&stage}});
  auto setup = Prepare(options);
  if (!setup.ok()) return ExitCodeOf(setup.status());
  const Status status = RunNode(options, *std::move(setup));
  return status.ok() ? kExitOk : ExitCodeOf(status);
}

}  // namespace
}  // namespace resmgr

int main(int argc, char** argv) {
  return resmgr::Main(argc, argv);
}
