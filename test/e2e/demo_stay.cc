// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/demo_stay.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"
#include "pkg/sys/signal_wakeup.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

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
  const Status started = node_.StartContainer(pod.workload, &pod);
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
