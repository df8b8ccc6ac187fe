// SPDX-License-Identifier: Apache-2.0
#include "test/bench/testbed.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "pkg/sys/unique_fd.h"
#include "test/support/fake_runtime/generic_server.h"

namespace resmgr::bench {

namespace {

constexpr std::chrono::seconds kStartTimeout{20};
constexpr std::chrono::seconds kEndTimeout{5};
constexpr std::chrono::microseconds kPollPeriod{100};
constexpr int kStarts = 9;

// A machine with room for everything, independent of the real one.
constexpr char kTopology[] = "synthetic:package:1 core:32 pu:2";

bool Connects(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

Status WaitForSocket(const std::string& path, test::ChildProcess& process) {
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  while (!Connects(path)) {
    if (!process.Running()) return Unavailable("the server of {} ended", path);
    if (std::chrono::steady_clock::now() > deadline) {
      return DeadlineExceeded("no listener on {}", path);
    }
    std::this_thread::sleep_for(kPollPeriod);
  }
  return OkStatus();
}

// One answered call; Unavailable when it is not.
Status CallOnce(LoadClient& client) {
  const LoadResult result =
      client.Run({.path = "/runtime.v1.RuntimeService/Version", .calls = 1, .request = [](int) {
                    return test::ToBuffer("");
                  }});
  if (result.errors > 0) return Unavailable("Version: {}", result.first_error);
  return OkStatus();
}

}  // namespace

// A daemon lists its runtime now and then. The containers of the other daemon would cost it time,
// so each daemon has a backend of its own.
std::string Testbed::BackendOf(size_t index) {
  return index < kDaemon ? "backend" : fmt::format("backend-{}", index);
}

Status Testbed::StartBackend(const std::string& name) {
  const std::string socket = SocketOf(name);
  RESMGR_ASSIGN_OR_RETURN(auto process,
                          test::ChildProcess::Start({"/proc/self/exe", "--backend", socket},
                                                    directory_ / (name + ".log")));
  backends_.push_back(std::move(process));
  return WaitForSocket(socket, *backends_.back());
}

std::vector<std::string> Testbed::Command(size_t index, const std::string& name) const {
  if (index < kDaemon) {
    return {RESMGR_BINARY_DIR "/test/bench/resmgr-byte-relay", "-listen", SocketOf(name),
            "-backend", SocketOf(BackendOf(index))};
  }
  const DaemonCommand& daemon = index == kOther ? *other_ : daemon_;
  std::vector<std::string> command = {
      daemon.program, "-policy", "static", "-reserved-resources", "CPU=1",
      // The cost of dumping is the user's choice and not a proxy's.
      "-topology", kTopology, "-relay-socket", SocketOf(name), "-runtime-socket",
      SocketOf(BackendOf(index)), "-relay-dir", directory_ / (name + "-state"), "-config-socket",
      SocketOf(name + "-config"), "-admin-socket", SocketOf(name + "-admin"), "-agent-socket",
      "disabled"};
  command.insert(command.end(), daemon.flags.begin(), daemon.flags.end());
  return command;
}

StatusOr<std::unique_ptr<Testbed>> Testbed::Start(const DaemonCommand& daemon,
                                                  const std::optional<DaemonCommand>& other) {
  std::string directory = std::filesystem::temp_directory_path() / "resmgr-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return Unavailable("cannot make {}", directory);
  std::unique_ptr<Testbed> bed(new Testbed(directory));
  bed->daemon_ = daemon;
  bed->other_ = other;
  const std::filesystem::path logs = bed->directory_;
  RESMGR_RETURN_IF_ERROR(bed->StartBackend(BackendOf(kDirect)));

  const char* const names[] = {"direct", "byte relay", "byte relay again", "cri-resmgr", "other"};
  const char* const sockets[] = {"backend", "relay", "again", "resmgr", "other"};
  for (size_t i = 0; i < (other ? kMostCandidates : kOther); ++i) {
    Candidate candidate{names[i], bed->SocketOf(sockets[i]), nullptr, nullptr};
    if (i >= kDaemon) RESMGR_RETURN_IF_ERROR(bed->StartBackend(BackendOf(i)));
    if (i != kDirect) {
      candidate.log = logs / (std::string(sockets[i]) + ".log");
      RESMGR_ASSIGN_OR_RETURN(
          candidate.process, test::ChildProcess::Start(bed->Command(i, sockets[i]), candidate.log));
      if (const Status status = WaitForSocket(candidate.socket, *candidate.process); !status.ok()) {
        return Annotate(status, test::LastLines(candidate.log));
      }
    }
    candidate.client = std::make_unique<LoadClient>(candidate.socket);
    RESMGR_RETURN_IF_ERROR(CallOnce(*candidate.client));
    bed->candidates_.push_back(std::move(candidate));
  }
  return bed;
}

// Daemons end by themselves, so that those that count what runs in them can write it down.
Testbed::~Testbed() {
  for (const Candidate& candidate : candidates_) {
    if (candidate.process != nullptr) candidate.process->Signal(SIGTERM);
  }
  for (const Candidate& candidate : candidates_) {
    if (candidate.process != nullptr) (void)candidate.process->Wait(kEndTimeout);
  }
  candidates_.clear();
  backends_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

StatusOr<std::chrono::nanoseconds> Testbed::StartUpTime(size_t index) {
  std::vector<std::chrono::nanoseconds> times;
  for (int i = 0; i < kStarts; ++i) {
    const std::string name = fmt::format("start-{}-{}", index, i);
    const auto start = std::chrono::steady_clock::now();
    RESMGR_ASSIGN_OR_RETURN(
        const auto process,
        test::ChildProcess::Start(Command(index, name), directory_ / "start.log"));
    RESMGR_RETURN_IF_ERROR(WaitForSocket(SocketOf(name), *process));
    LoadClient client(SocketOf(name));
    RESMGR_RETURN_IF_ERROR(CallOnce(client));
    times.push_back(std::chrono::steady_clock::now() - start);
  }
  std::nth_element(times.begin(), times.begin() + kStarts / 2, times.end());
  return times[kStarts / 2];
}

}  // namespace resmgr::bench
