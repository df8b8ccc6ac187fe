// SPDX-License-Identifier: Apache-2.0
// The cost of cri-resmgr between a client of the Docker API and its engine: `docker-bench`.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "pkg/base/parse.h"
#include "pkg/base/status.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"
#include "test/bench/figures.h"
#include "test/bench/pin.h"
#include "test/bench/process_stats.h"
#include "test/bench/server.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::bench {
namespace {

using std::chrono::steady_clock;
using test::ChildProcess;

// One connection to an engine; requests and replies one after the other, and as little work of its
// own as possible. Replies have a Content-Length. Thread-compatible.
class HttpClient {
 public:
  explicit HttpClient(std::string socket) : socket_(std::move(socket)) {}

  // Connects first if necessary. kUnavailable: the connection fails, or no whole reply of status
  // 2xx comes.
  Status Call(std::string_view request);
  void Disconnect() { fd_.Reset(); }

 private:
  Status ReadReply();

  const std::string socket_;
  UniqueFd fd_;
  std::string reply_;
};

constexpr std::string_view kEndOfReplyHead = "\r\n\r\n";
constexpr std::string_view kLengthField = "Content-Length: ";

Status HttpClient::Call(std::string_view request) {
  if (!fd_.valid()) {
    RESMGR_ASSIGN_OR_RETURN(fd_, ConnectUnix(socket_));
    ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) & ~O_NONBLOCK);
  }
  while (!request.empty()) {
    const ssize_t size = ::send(fd_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (size < 0) return Unavailable("send: {}", std::strerror(errno));
    request.remove_prefix(static_cast<size_t>(size));
  }
  return ReadReply();
}

Status HttpClient::ReadReply() {
  std::array<char, 16384> buffer{};
  reply_.clear();
  size_t whole = std::string::npos;
  while (reply_.size() < whole) {
    const ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) return Unavailable("no whole reply: {}", reply_);
    reply_.append(buffer.data(), static_cast<size_t>(size));
    const size_t end = reply_.find(kEndOfReplyHead);
    if (whole != std::string::npos || end == std::string::npos) continue;
    const size_t at = reply_.find(kLengthField);
    if (at >= end) return Unavailable("a reply without a length: {}", reply_);
    const size_t begin = at + kLengthField.size();
    const auto length =
        ParseUint(std::string_view(reply_).substr(begin, reply_.find('\r', begin) - begin));
    if (!length) return Unavailable("a reply without a length: {}", reply_);
    whole = end + kEndOfReplyHead.size() + *length;
  }
  return reply_.starts_with("HTTP/1.1 2") ? OkStatus() : Unavailable("{}", reply_);
}

constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr std::string_view kLength = "Content-Length: ";
// dockerd 20.10's to GET /version.
constexpr size_t kBodySize = 850;

std::string Reply() {
  return fmt::format(
      "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n"
      "Docker-Experimental: false\r\nOstype: linux\r\nServer: Docker/20.10.24 (linux)\r\n"
      "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: {}\r\n\r\n{}",
      kBodySize, std::string(kBodySize, 'v'));
}

size_t LengthIn(std::string_view head) {
  const size_t at = head.find(kLength);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = head.substr(at + kLength.size());
  return ParseUint(rest.substr(0, rest.find('\r'))).value_or(0);
}

void Serve(const UniqueFd& fd, const std::string& reply) {
  std::array<char, 65536> buffer{};
  std::string head;
  while (true) {
    // The rest of the head, and perhaps a part of the body.
    size_t end = std::string::npos;
    while ((end = head.find(kEndOfHead)) == std::string::npos) {
      const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) return;
      head.append(buffer.data(), static_cast<size_t>(size));
    }
    end += kEndOfHead.size();
    size_t missing = LengthIn(std::string_view(head).substr(0, end));
    const size_t here = std::min(missing, head.size() - end);
    head.erase(0, end + here);
    missing -= here;
    while (missing > 0) {
      const ssize_t size = ::recv(fd.get(), buffer.data(), std::min(missing, buffer.size()), 0);
      if (size <= 0) return;
      missing -= static_cast<size_t>(size);
    }
    if (::send(fd.get(), reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
  }
}

// Serves the Docker API on this socket as a lean engine does, for ever: any request has the same
// reply, as long as that of `GET /version`, and its body is read and dropped. A thread for each
// connection, as in dockerd.
int ServeCannedEngine(const std::string& socket) {
  auto listener = ListeningSocket::Create(socket);
  if (!listener.ok()) {
    std::fprintf(stderr, "%s\n", Describe(listener.status()).c_str());
    return 2;
  }
  const std::string reply = Reply();
  while (true) {
    pollfd waiting{.fd = listener->fd(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, -1);
    auto accepted = listener->Accept();
    if (!accepted.ok() || !accepted->has_value()) continue;
    const int flags = ::fcntl((*accepted)->get(), F_GETFL);
    ::fcntl((*accepted)->get(), F_SETFL, flags & ~O_NONBLOCK);
    std::thread([fd = **std::move(accepted), &reply] { Serve(fd, reply); }).detach();
  }
}

constexpr std::string_view kDaemon = RESMGR_BINARY_DIR "/cmd/cri-resmgr/cri-resmgr";
constexpr std::string_view kByteRelay = RESMGR_BINARY_DIR "/test/bench/resmgr-byte-relay";

enum Way : size_t { kDirect, kRelay, kRelayAgain, kOurs, kWays };
constexpr std::array<std::string_view, kWays> kNames{"direct", "byte relay", "byte relay again",
                                                     "cri-resmgr"};

struct Scenario {
  std::string name;
  std::string request;
  bool connects = false;  // each call on a connection of its own
  int calls = 0;
  double target = 0;  // of the ratio; 0: shown
};

struct Candidate {
  std::string socket;
  std::unique_ptr<ChildProcess> process;  // null: the direct way
};

struct Sample {
  double p50 = 0;  // microseconds
  double cpu = 0;  // of the process, per call
};
using Round = std::array<Sample, kWays>;

// A real engine is only asked for its version.
std::vector<Scenario> Scenarios(bool quick, bool real) {
  const int calls = quick ? 300 : 2000;
  const std::string version =
      "GET /v1.41/version HTTP/1.1\r\nHost: docker\r\nUser-Agent: Docker-Client/20.10.24 "
      "(linux)\r\n"
      "\r\n";
  const auto post = [](size_t size) {
    return fmt::format(
        "POST /v1.41/exec/0123456789ab/json HTTP/1.1\r\nHost: docker\r\nContent-Type: "
        "application/json\r\nContent-Length: {}\r\n\r\n{}",
        size, std::string(size, 'b'));
  };
  std::vector<Scenario> scenarios = {
      {.name = "GET /version", .request = version, .calls = calls, .target = 1.5},
      {.name = "GET /version, connecting", .request = version, .connects = true, .calls = calls}};
  if (real) return scenarios;
  scenarios.push_back({.name = "POST of 4 KiB", .request = post(size_t{4} << 10), .calls = calls});
  scenarios.push_back(
      {.name = "POST of 4 MiB", .request = post(size_t{4} << 20), .calls = calls / 50});
  return scenarios;
}

StatusOr<Candidate> Start(const std::vector<std::string>& argv, const std::string& socket,
                          const std::filesystem::path& log) {
  Candidate candidate{.socket = socket, .process = nullptr};
  RESMGR_ASSIGN_OR_RETURN(candidate.process, StartServer(argv, socket, log));
  return candidate;
}

class Bench {
 public:
  static StatusOr<std::unique_ptr<Bench>> Make(const std::string& engine) {
    std::unique_ptr<Bench> bench(new Bench);
    RESMGR_RETURN_IF_ERROR(bench->StartAll(engine));
    return bench;
  }

  StatusOr<Sample> Burst(const Scenario& scenario, Way way) {
    const Candidate& candidate = candidates_[way];
    const pid_t pid = candidate.process ? candidate.process->pid() : 0;
    HttpClient client(candidate.socket);
    RESMGR_RETURN_IF_ERROR(client.Call(scenario.request));
    std::vector<double> times;
    const auto cpu = pid != 0 ? CpuTime(pid) : std::chrono::nanoseconds(0);
    for (int i = 0; i < scenario.calls; ++i) {
      const auto start = steady_clock::now();
      if (scenario.connects) client.Disconnect();
      RESMGR_RETURN_IF_ERROR(client.Call(scenario.request));
      times.push_back(Micros(steady_clock::now() - start));
    }
    Sample sample{.p50 = Median(std::move(times)), .cpu = 0};
    if (pid != 0) sample.cpu = Micros(CpuTime(pid) - cpu) / scenario.calls;
    return sample;
  }

  int64_t PeakRss() const { return PeakRssKib(candidates_[kOurs].process->pid()); }

 private:
  Bench() = default;

  Status StartAll(const std::string& engine) {
    const std::filesystem::path at = directory_.path();
    const std::filesystem::path log = at / "log";
    std::string behind = engine;
    if (behind.empty()) {
      behind = at / "engine.sock";
      RESMGR_ASSIGN_OR_RETURN(engine_, Start({"/proc/self/exe", "--serve", behind}, behind, log));
    }
    candidates_[kDirect].socket = behind;
    for (const Way way : {kRelay, kRelayAgain}) {
      const std::string socket = at / fmt::format("relay{}.sock", static_cast<int>(way));
      RESMGR_ASSIGN_OR_RETURN(
          candidates_[way],
          Start({std::string(kByteRelay), "-listen", socket, "-backend", behind}, socket, log));
    }
    const std::string socket = at / "ours.sock";
    RESMGR_ASSIGN_OR_RETURN(
        candidates_[kOurs],
        Start(Alone({std::string(kDaemon), "-mode", "docker", "-docker-socket", behind,
                     "-relay-socket", socket, "-relay-dir", at / "state", "-policy", "null"}),
              socket, log));
    return OkStatus();
  }

  TempDir directory_;
  Candidate engine_;
  std::array<Candidate, kWays> candidates_;
};

// Whether the target is met.
bool Print(const Scenario& scenario, const std::vector<Round>& rounds) {
  const auto added = [&](Way way) {
    return MedianOf(rounds, [way](const Round& round) {
      return (round[way].p50 - round[kDirect].p50) / (round[kRelay].p50 - round[kDirect].p50);
    });
  };
  std::printf("\n%s\n", scenario.name.c_str());
  for (size_t way = 0; way < kWays; ++way) {
    std::printf("  %-18s p50 %8.1f us, CPU %7.1f us\n", std::string(kNames[way]).c_str(),
                MedianOf(rounds, [way](const Round& round) { return round[way].p50; }),
                MedianOf(rounds, [way](const Round& round) { return round[way].cpu; }));
  }
  const double ratio = added(kOurs);
  const double cpu =
      MedianOf(rounds, [](const Round& round) { return round[kOurs].cpu / round[kRelay].cpu; });
  std::printf("  added %.2f (A/A %.2f), CPU %.2f", ratio, added(kRelayAgain), cpu);
  const bool met = scenario.target == 0 || ratio <= scenario.target;
  if (scenario.target > 0) std::printf(", target %.1f%s", scenario.target, met ? "" : ": MISSED");
  std::printf("\n");
  return met;
}

int Run(const std::string& engine, bool quick, int rounds_wanted) {
  // All processes run on one CPU: with more CPUs the numbers would include wake-ups.
  (void)Pin(0);
  const auto bench = Bench::Make(engine);
  if (!bench.ok()) {
    std::fprintf(stderr, "%s\n", Describe(bench.status()).c_str());
    return 2;
  }
  bool met = true;
  for (const Scenario& scenario : Scenarios(quick, !engine.empty())) {
    std::vector<Round> rounds(static_cast<size_t>(rounds_wanted));
    for (size_t i = 0; i < rounds.size(); ++i) {
      for (size_t j = 0; j < kWays; ++j) {
        const auto way = static_cast<Way>((i + j) % kWays);
        const auto sample = (*bench)->Burst(scenario, way);
        if (!sample.ok()) {
          std::fprintf(stderr, "%s: %s\n", scenario.name.c_str(),
                       Describe(sample.status()).c_str());
          return 2;
        }
        rounds[i][way] = *sample;
      }
    }
    met = Print(scenario, rounds) && met;
  }
  std::printf("\npeak RSS of cri-resmgr: %lld KiB\n", static_cast<long long>((*bench)->PeakRss()));
  return met ? 0 : 1;
}

int Main(int argc, char** argv) {
  std::string engine;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--quick") {
      quick = true;
    } else if (argument == "--serve" && i + 1 < argc) {
      return ServeCannedEngine(argv[i + 1]);
    } else if (argument == "--engine" && i + 1 < argc) {
      engine = argv[++i];
    } else {
      std::fprintf(stderr, "usage: %s [--quick] [--engine SOCKET]\n", argv[0]);
      return 1;
    }
  }
  constexpr int kRounds = 21;
  constexpr int kQuickRounds = 5;
  return Run(engine, quick, quick ? kQuickRounds : kRounds);
}

}  // namespace
}  // namespace resmgr::bench

int main(int argc, char** argv) {
  return resmgr::bench::Main(argc, argv);
}
