// SPDX-License-Identifier: Apache-2.0
// resmgr-demo: shows which CPUs containers get behind cri-resmgr with the static policy. Uses real
// containers if containerd can run; else, and for scenes that need more CPUs, the fake runtime on a
// synthetic machine. Fails if a container is on wrong CPUs. With --stay the node runs until Ctrl-C.
//
// usage: resmgr-demo [--stay [--fake]]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "pkg/topology/machine_source.h"
#include "test/e2e/demo_scene.h"
#include "test/e2e/node.h"

namespace {

using resmgr::Describe;
using resmgr::OkStatus;
using resmgr::Status;
using resmgr::test::DemoScene;
using resmgr::test::DemoStay;
using resmgr::test::Node;

// The reserved one, where the shared containers end up, and one for each.
constexpr int kCpusForTwoAtOnce = 3;
constexpr int kSyntheticCpus = 8;

Status Play(Node& node, int cpus) {
  namespace cri = resmgr::test::cri;
  cri::VersionResponse version;
  const grpc::Status answer = node.client().Unary("Version", cri::VersionRequest(), &version);
  if (!answer.ok()) return resmgr::test::FromGrpc(answer);
  fmt::print("  client -> cri-resmgr (static policy, CPU 0 reserved) -> {} {} on {} CPUs\n",
             version.runtime_name(), version.runtime_version(), cpus);
  const Status played = DemoScene(node).Play(cpus >= kCpusForTwoAtOnce);
  return played.ok() ? played : resmgr::Annotate(played, node.RelayLog());
}

// A machine with one memory node would show the same for every container.
Status PlayOnNodes() {
  RESMGR_ASSIGN_OR_RETURN(const resmgr::Machine machine, resmgr::LoadMachine("live"));
  if (machine.nodes().size() < 2) return OkStatus();
  RESMGR_ASSIGN_OR_RETURN(const std::unique_ptr<Node> node,
                          Node::OnContainerd({.policy = "topology-aware"}));
  fmt::print(
      "\nThe same machine has {} NUMA nodes, for which there is the policy topology-aware:\n",
      machine.nodes().size());
  const Status played = DemoScene(*node).PlayOnNodes(machine);
  return played.ok() ? played : resmgr::Annotate(played, node->RelayLog());
}

Status PlayOnFakeRuntime() {
  fmt::print("\nThe FAKE runtime on a synthetic machine of {} CPUs (no real containers):\n\n",
             kSyntheticCpus);
  RESMGR_ASSIGN_OR_RETURN(const std::unique_ptr<Node> node,
                          Node::OnFakeRuntime(kSyntheticCpus, {}));
  return Play(*node, kSyntheticCpus);
}

Status PlayEverything() {
  auto node = Node::OnContainerd({});
  if (!node.ok()) {
    fmt::print("\nReal containers cannot run here: {}\n", Describe(node.status()));
    return PlayOnFakeRuntime();
  }
  fmt::print("\nReal containers on this machine, their CPUs read from inside of them:\n\n");
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  RESMGR_RETURN_IF_ERROR(Play(**node, cpus));
  node->reset();
  RESMGR_RETURN_IF_ERROR(PlayOnNodes());
  if (cpus >= kCpusForTwoAtOnce) return OkStatus();
  fmt::print(
      "\nWith {} CPUs, one of them reserved, only one exclusive container fits at a time."
      "\nSo once more with two of them at once:\n",
      cpus);
  return PlayOnFakeRuntime();
}

// The policy comes from a file, so that `config set` can change it.
Status Stay(bool fake) {
  const Node::Options options = {
      .policy = "",
      .reserved = "",
      .config = "policy: {Active: static, ReservedResources: {CPU: cpuset:0}}\n"};
  resmgr::StatusOr<std::unique_ptr<Node>> node = Status(resmgr::Unavailable("--fake"));
  if (!fake) {
    node = Node::OnContainerd(options);
    if (!node.ok()) fmt::print("\nReal containers cannot run here: {}\n", Describe(node.status()));
  }
  if (!node.ok()) {
    fmt::print("\nThe FAKE runtime on a synthetic machine of {} CPUs (no real containers).\n",
               kSyntheticCpus);
    node = Node::OnFakeRuntime(kSyntheticCpus, options);
  }
  RESMGR_RETURN_IF_ERROR(node.status());
  return DemoStay(**node, (*node)->ConfigSocket().parent_path()).Run();
}

Status Do(const std::vector<std::string_view>& options) {
  if (options.empty()) return PlayEverything();
  const bool fake = options.size() == 2 && options[1] == "--fake";
  if (options[0] != "--stay" || options.size() > (fake ? 2U : 1U)) {
    return resmgr::InvalidArgument("usage: resmgr-demo [--stay [--fake]]");
  }
  return Stay(fake);
}

}  // namespace

int main(int argc, char** argv) {
  // Each step shows when it happens, also through a pipe.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const Status played = Do({argv + 1, argv + argc});
  if (!played.ok()) {
    fmt::print(stderr, "\nFAILED: {}\n", Describe(played));
    return EXIT_FAILURE;
  }
  fmt::print("\nDone.\n");
  return EXIT_SUCCESS;
}
