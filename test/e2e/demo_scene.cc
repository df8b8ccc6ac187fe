// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/demo_scene.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "pkg/kube/quantity.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

// How long a container may take to grow after another one has left, in an emulated machine too.
constexpr std::chrono::seconds kGrowTimeout{30};
constexpr std::chrono::seconds kExplainTimeout{60};

constexpr std::string_view kRow = "    {:<10} {:<11} {:>7}   {:<12} {}\n";

}  // namespace

Status DemoScene::Play(bool at_once) {
  RESMGR_RETURN_IF_ERROR(
      Start(Burstable("web", MilliCpu{500}), "a shared container runs on all CPUs"));
  RESMGR_RETURN_IF_ERROR(Start(BestEffort("batch"), "a second shared container starts"));
  RESMGR_RETURN_IF_ERROR(
      Start(Guaranteed("dsp-a", 1),
            "an exclusive container starts: the shared containers leave its CPU"));
  if (at_once) {
    RESMGR_RETURN_IF_ERROR(
        Start(Guaranteed("dsp-b", 1), "a second exclusive container starts: they leave its CPU"));
    RESMGR_RETURN_IF_ERROR(
        Remove("dsp-a", "the first exclusive container ends: they get its CPU back"));
    RESMGR_RETURN_IF_ERROR(Explain("dsp-b"));
  } else {
    RESMGR_RETURN_IF_ERROR(Remove("dsp-a", "it ends: the shared containers get its CPU back"));
    RESMGR_RETURN_IF_ERROR(Start(Guaranteed("dsp-b", 1), "a second exclusive container starts"));
  }
  RESMGR_RETURN_IF_ERROR(Remove("dsp-b", "the second exclusive container ends: all is as before"));

  node_.watch().LookAgain();
  const std::vector<std::string> violations = node_.watch().violations();
  if (!violations.empty()) return Internal("{}", violations.front());
  fmt::print(
      "\n  Checked {} times meanwhile: no shared container was ever on a CPU of a running\n"
      "  exclusive container.\n",
      node_.watch().looks());
  return OkStatus();
}

Status DemoScene::PlayOnNodes(const Machine& machine) {
  for (const Workload& workload : {Burstable("web", MilliCpu{500}), Guaranteed("dsp-a", 2),
                                   Guaranteed("dsp-b", 4), Guaranteed("dsp-c", 2)}) {
    RESMGR_ASSIGN_OR_RETURN(RunningPod pod, node_.Run(workload));
    pods_.push_back(std::move(pod));
  }
  return ShowNodes(machine, "a shared container and three exclusive ones, with their memory");
}

Status DemoScene::ShowNodes(const Machine& machine, std::string_view what_happens) {
  RESMGR_RETURN_IF_ERROR(ExclusiveCpus().status());
  fmt::print("\n  {}. {}\n", ++step_, what_happens);
  fmt::print(kRow, "container", "QoS", "request", "CPUs inside", "memory nodes inside");
  for (const RunningPod& pod : pods_) {
    RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, node_.CpusInside(pod));
    RESMGR_ASSIGN_OR_RETURN(const std::string mems, node_.client().AllowedMems(pod.container_id));
    const bool exclusive = pod.workload.Exclusive();
    fmt::print(kRow, pod.workload.name, ToString(pod.workload.qos),
               FormatMilliCpu(pod.workload.cpu_request), cpus.ToString(),
               mems + (exclusive ? " (exclusive)" : " (shared)"));
    if (exclusive && mems != machine.NodesOf(cpus).ToString()) {
      return Internal("exclusive container {} with memory of nodes {}", pod.workload.name, mems);
    }
  }
  return OkStatus();
}

Status DemoScene::Start(const Workload& workload, std::string_view what_happens) {
  RESMGR_ASSIGN_OR_RETURN(RunningPod pod, node_.Run(workload));
  pods_.push_back(std::move(pod));
  return Show(what_happens);
}

Status DemoScene::Remove(const std::string& name, std::string_view what_happens) {
  const auto leaving =
      std::ranges::find_if(pods_, [&](const RunningPod& pod) { return pod.workload.name == name; });
  RESMGR_RETURN_IF_ERROR(node_.Remove(*leaving));
  pods_.erase(leaving);
  return Show(what_happens);
}

Status DemoScene::Show(std::string_view what_happens) {
  if (all_.empty()) {
    RESMGR_ASSIGN_OR_RETURN(all_, node_.CpusInside(pods_.front()));
  }
  RESMGR_ASSIGN_OR_RETURN(const CpuSet exclusive, ExclusiveCpus());
  fmt::print("\n  {}. {}\n", ++step_, what_happens);
  fmt::print(kRow, "container", "QoS", "request", "CPUs inside", "");
  for (const RunningPod& pod : pods_)
    RESMGR_RETURN_IF_ERROR(PrintRow(pod, all_ - exclusive));
  return OkStatus();
}

Status DemoScene::Explain(const std::string& name) {
  const std::filesystem::path directory = node_.ConfigSocket().parent_path();
  const std::filesystem::path output = directory / "explain.out";
  RESMGR_RETURN_IF_ERROR(RunProgram({Program("cri-resmgr-ctl"), "-socket", directory / "admin.sock",
                                     "explain", "default/" + name},
                                    output, kExplainTimeout));
  fmt::print("\n  {}. why {} has its CPU: cri-resmgr-ctl explain default/{}\n\n{}", ++step_, name,
             name, TextOf(output));
  return OkStatus();
}

Status DemoScene::PrintRow(const RunningPod& pod, const CpuSet& shared) {
  StatusOr<CpuSet> cpus = node_.CpusInside(pod);
  const bool exclusive = pod.workload.Exclusive();
  if (!exclusive) {
    RESMGR_RETURN_IF_ERROR(
        WaitUntil(fmt::format("container {} on CPUs {}", pod.workload.name, shared.ToString()),
                  kGrowTimeout, [&] {
                    cpus = node_.CpusInside(pod);
                    return !cpus.ok() || *cpus == shared;
                  }));
  }
  RESMGR_RETURN_IF_ERROR(cpus.status());
  const MilliCpu request = pod.workload.cpu_request;
  fmt::print(kRow, pod.workload.name, ToString(pod.workload.qos),
             request.value == 0 ? "-" : FormatMilliCpu(request), cpus->ToString(),
             exclusive ? "exclusive" : "shared");
  return OkStatus();
}

// The exclusive CPUs: each set has the requested size, and no two sets share a CPU.
StatusOr<CpuSet> DemoScene::ExclusiveCpus() {
  CpuSet taken;
  for (const RunningPod& pod : pods_) {
    if (!pod.workload.Exclusive()) continue;
    RESMGR_ASSIGN_OR_RETURN(const CpuSet own, node_.CpusInside(pod));
    if (own.size() != pod.workload.cpu_request.Whole() || own.Intersects(taken)) {
      return Internal("exclusive container {} on CPUs {}", pod.workload.name, own.ToString());
    }
    taken |= own;
  }
  return taken;
}

}  // namespace resmgr::test
