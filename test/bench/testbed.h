// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "test/bench/load_client.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::bench {

// A daemon to measure: the program, and the flags that it gets besides those of the testbed.
struct DaemonCommand {
  std::string program;
  std::vector<std::string> flags = {};
};

// A way to the backend that calls can take.
struct Candidate {
  std::string name;
  std::string socket;
  std::unique_ptr<test::ChildProcess> process;  // none for the direct way
  std::unique_ptr<LoadClient> client;
  std::filesystem::path log = {};  // of the process
};

// Backends and all candidates as processes of their own in one directory, gone with the object.
// They inherit the CPU pinning of the thread that makes the testbed.
class Testbed {
 public:
  // kOther exists only with another daemon.
  enum Index : size_t { kDirect, kByteRelay, kByteRelayAgain, kDaemon, kOther, kMostCandidates };

  // `other` is measured beside `daemon`. Unavailable: something did not start.
  static StatusOr<std::unique_ptr<Testbed>> Start(const DaemonCommand& daemon,
                                                  const std::optional<DaemonCommand>& other = {});
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  Candidate& at(size_t index) { return candidates_[index]; }
  size_t candidates() const { return candidates_.size(); }

  // From the start of the process to its first answer; the median of some starts.
  StatusOr<std::chrono::nanoseconds> StartUpTime(size_t index);

 private:
  explicit Testbed(std::filesystem::path directory) : directory_(std::move(directory)) {}
  static std::string BackendOf(size_t index);
  Status StartBackend(const std::string& name);
  std::vector<std::string> Command(size_t index, const std::string& name) const;
  std::string SocketOf(const std::string& name) const { return directory_ / (name + ".sock"); }

  std::filesystem::path directory_;
  DaemonCommand daemon_;
  std::optional<DaemonCommand> other_;
  std::vector<std::unique_ptr<test::ChildProcess>> backends_;
  std::vector<Candidate> candidates_;
};

}  // namespace resmgr::bench
