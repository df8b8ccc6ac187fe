// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/demo_scene.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"
#include "pkg/kube/quantity.h"
#include "pkg/sys/signal_wakeup.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

// How long a container may take to grow after another one has left, in an emulated machine too.
constexpr std::chrono::seconds kGrowTimeout{30};
constexpr std::chrono::seconds kExplainTimeout{60};

constexpr std::string_view kRow = "    {:<10} {:<11} {:>7}   {:<12} {}\n";

constexpr size_t kMaxLine = 256;
constexpr size_t kMaxName = 32;
constexpr int kMaxCpus = 1024;

bool IsPodName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == name.npos;
}

std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string_view word : Split(line, ' '))
    if (const std::string_view trimmed = Trim(word); !trimmed.empty()) words.emplace_back(trimmed);
  return words;
}

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

Status DemoStay::Run() {
  if (::mkfifo(Pipe().c_str(), S_IRUSR | S_IWUSR) != 0) {
    return Unavailable("cannot make {}: {}", Pipe().string(), std::strerror(errno));
  }
  // Open for writing, too: else it would end with each writer.
  const UniqueFd pipe(::open(Pipe().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!pipe.valid()) return Unavailable("cannot open {}", Pipe().string());
  RESMGR_RETURN_IF_ERROR(Create("web", 0));
  RESMGR_RETURN_IF_ERROR(Create("dsp", 1));
  PrintCommands();
  return Serve(pipe.get());
}

void DemoStay::PrintCommands() const {
  fmt::print(
      "\n  The node runs until Ctrl-C. Its pods: default/web (shared) and default/dsp (one CPU of\n"
      "  its own). In a second terminal:\n\n"
      "    alias cri-resmgr-ctl='{} -socket {}'\n"
      "    cri-resmgr-ctl status\n"
      "    cri-resmgr-ctl explain default/dsp\n"
      "    echo create db 2 > {}     # a Guaranteed pod with 2 CPUs; without a number: shared\n"
      "    echo remove db > {}\n\n",
      Program("cri-resmgr-ctl"), (directory_ / "admin.sock").string(), Pipe().string(),
      Pipe().string());
}

Status DemoStay::Serve(int pipe) {
  const SignalWakeup interrupt(SIGINT);
  const SignalWakeup terminate(SIGTERM);
  std::string text;
  for (;;) {
    std::array<pollfd, 3> waiting = {pollfd{pipe, POLLIN, 0}, pollfd{interrupt.fd(), POLLIN, 0},
                                     pollfd{terminate.fd(), POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) {
      return Internal("poll: {}", std::strerror(errno));
    }
    if (waiting[1].revents != 0 || waiting[2].revents != 0) return OkStatus();
    std::array<char, kMaxLine> piece{};
    const ssize_t size = ::read(pipe, piece.data(), piece.size());
    if (size <= 0) continue;
    text.append(piece.data(), static_cast<size_t>(size));
    for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
      Do(std::string_view(text).substr(0, end));
      text.erase(0, end + 1);
    }
    if (text.size() > kMaxLine) text.clear();
  }
}

void DemoStay::Do(std::string_view line) {
  const std::vector<std::string> words = WordsOf(line);
  if (words.empty()) return;
  const int64_t cpus = words.size() == 3 ? ParseInt(words[2]).value_or(-1) : 0;
  Status done = InvalidArgument("this takes: create NAME [CPUS], or remove NAME");
  if (words[0] == "create" && (words.size() == 2 || words.size() == 3) && IsPodName(words[1]) &&
      cpus >= 0 && cpus <= kMaxCpus) {
    done = Create(words[1], static_cast<int>(cpus));
  } else if (words[0] == "remove" && words.size() == 2) {
    done = Remove(words[1]);
  }
  fmt::print("  {}: {}\n", PrintableLines(line), done.ok() ? "done" : Describe(done));
}

Status DemoStay::Create(const std::string& name, int cpus) {
  const auto known =
      std::ranges::find(pods_, name, [](const RunningPod& pod) { return pod.workload.name; });
  if (known != pods_.end()) return InvalidArgument("there is a pod of this name");
  RunningPod pod{.workload = cpus == 0 ? BestEffort(name) : Guaranteed(name, cpus),
                 .config = {},
                 .pod_id = "",
                 .container_id = ""};
  pod.config = node_.PodConfig(pod.workload);
  RESMGR_ASSIGN_OR_RETURN(pod.pod_id, node_.client().RunPod(pod.config));
  Status started = node_.StartContainer(pod.workload, &pod);
  if (started.ok()) {
    pods_.push_back(std::move(pod));
    return OkStatus();
  }
  // A refused container leaves its pod, which would be in the way of the next one of this name.
  [[maybe_unused]] const Status stopped = node_.client().StopPod(pod.pod_id);
  [[maybe_unused]] const Status removed = node_.client().RemovePod(pod.pod_id);
  return started;
}

Status DemoStay::Remove(const std::string& name) {
  const auto leaving =
      std::ranges::find(pods_, name, [](const RunningPod& pod) { return pod.workload.name; });
  if (leaving == pods_.end()) return NotFound("there is no pod of this name");
  RESMGR_RETURN_IF_ERROR(node_.Remove(*leaving));
  pods_.erase(leaving);
  return OkStatus();
}

}  // namespace resmgr::test
