// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/topology/cpu_set.h"
#include "test/support/containerd/child_process.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/cri_client/specs.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/programs/programs.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr::test {

inline constexpr char kVersion[] = "/runtime.v1.RuntimeService/Version";

using std::chrono::milliseconds;
using std::chrono::seconds;

// The limit for effects that happen "at once". A machine that is busy with other tests may stand
// still for seconds, so this tells them only from effects that wait for a hang.
inline constexpr milliseconds kAtOnce{10'000};
// The same for tests that run alone, and for the quickest of several times. Programs with
// sanitizers take several times as long, and are not judged by it: they only must not hang.
inline const milliseconds kAtOnceAlone{SanitizedPrograms() ? 10'000 : 1000};
// The limit of a wait for something that certainly comes.
inline const milliseconds kPatience{SanitizedPrograms() ? 60'000 : 20'000};

// A cri-resmgr process before a fake runtime, each test in a directory of its own. The machine has
// kCpus CPUs, of which one is reserved under the static policy.
class DaemonTest : public testing::Test {
 protected:
  static constexpr int kCpus = 8;

  // The runtime's containers can have CPUs 0 to cpus-1. For a run of many calls it may keep no
  // record of them.
  explicit DaemonTest(int cpus = kCpus, bool record = true);
  ~DaemonTest() override;

  std::string Path(std::string_view name) const { return directory_.File(std::string(name)); }
  std::string RuntimeSocket() const { return Path("runtime.sock"); }
  std::string RelaySocket() const { return Path("relay.sock"); }

  // The flags that keep a daemon within the directory, then `more`.
  std::vector<std::string> Flags(const std::vector<std::string>& more) const;
  std::vector<std::string> StaticFlags(const std::vector<std::string>& more = {}) const;

  void StartRuntime();
  void StartDaemon(const std::vector<std::string>& flags);
  // Starts both, with the static policy; returns when the daemon has adopted the runtime's
  // containers.
  void StartBoth();

  CriClient Direct(ApiVersion version = ApiVersion::kV1) const;
  CriClient Relayed(ApiVersion version = ApiVersion::kV1) const;
  // Starts both, and returns a client of the daemon.
  CriClient Started() {
    StartBoth();
    return Relayed();
  }

  // Waits until the daemon that was started last has logged it: lines are collected for some
  // milliseconds before they are written.
  bool Logged(std::string_view text) const;
  // Waits until the file of the directory has the text.
  bool FileHas(std::string_view name, std::string_view text) const {
    return Eventually([&] { return TextOf(Path(name)).find(text) != std::string::npos; });
  }

  pid_t pid() { return daemon_->process().pid(); }
  // From /proc/PID/status, "VmHWM:" for example; 0 where there is none.
  int64_t ProcStatus(const std::string& key);
  int OpenFiles();

  static cri::CreateContainerRequest CreateRequest(const std::string& pod_id,
                                                   const cri::PodSandboxConfig& pod,
                                                   const cri::ContainerConfig& container);

  // Runs a pod with one container in it and starts that.
  struct Running {
    std::string pod;
    std::string container;
  };
  Running Run(CriClient& client, const cri::PodSandboxConfig& pod,
              const cri::ContainerConfig& container);

  // The container's CPUs at the runtime; empty if none were set.
  CpuSet CpusAtRuntime(const std::string& container);

  TempDir directory_;
  FakeRuntime runtime_;
  std::unique_ptr<DaemonProcess> daemon_;

 private:
  const DaemonProcess* started_ = nullptr;  // by StartDaemon
  size_t log_begin_ = 0;                    // of its log, which follows those of others
};

}  // namespace resmgr::test
