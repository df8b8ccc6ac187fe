// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/api/runtimehook.pb.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::test {

namespace hook_api = ::runtime::v1alpha1;

// The real daemon with policy null and hooks on, before a fake runtime, and hook servers that are
// processes on gRPC's own library (test/support/hook_server). Each test in a directory of its own.
class HookRowsTest : public DaemonTest {
 protected:
  // The rows' names are K01 to K27; their files are:
  //
  //   hook_faults_test.cc    K01 to K05, K16: files of the directory, and the start
  //                          K07 to K10, K17 to K19: what hangs, dies and is not there
  //
  //   hook_values_test.cc    K06, K11 to K15, K20 to K23, K26, K27: what servers see and change
  //
  //   docker_rows_test.cc    K24 K25: mode docker; with a real dockerd in test/e2e/docker

  // With `points` as in the file's list, `more` being further members, each with a comma in front.
  static std::string FileText(const std::string& socket, const std::string& points,
                              const std::string& more = "");
  // Written beside and renamed, so that no half file is ever read.
  void PutFile(const std::string& name, const std::string& text);
  std::string HookDirectory() const { return Path("hooks.d"); }
  std::string CallsOf(const std::string& name) const { return Path(name + ".calls"); }

  // A server on Path(name + ".sock") that serves when this returns.
  std::unique_ptr<ChildProcess> Serve(const std::string& name,
                                      const std::vector<std::string>& behaviour = {});
  // Returns when none of the server's threads runs, since after the signal alone one may still
  // answer.
  static void Stop(ChildProcess& server);
  // The runtime, then the daemon, which knows its hook files when this returns.
  void StartNode(const std::vector<std::string>& more = {});
  void StartDaemonWithHooks(const std::vector<std::string>& more = {});
  // Waits until `count` servers are connected.
  void AwaitServers(size_t count);
  // Does both, and returns a client.
  CriClient StartNodeWith(size_t servers, const std::vector<std::string>& more = {}) {
    StartNode(more);
    AwaitServers(servers);
    return Relayed();
  }
  // `cri-resmgr-ctl config set` of this text.
  Status SetConfig(const std::string& text) const;
  // The output of `cri-resmgr-ctl COMMAND -o json`; "" where it fails.
  std::string Ctl(const std::vector<std::string>& command) const;
  // The number of containers of the default namespace that servers can be asked about.
  size_t KnownContainers() const;

  // The requests that this server had for this hook, in their order.
  template <typename Message>
  std::vector<Message> Asked(const std::string& server, std::string_view hook) const {
    std::vector<Message> messages;
    for (const std::string& bytes : Calls(server, hook))
      messages.emplace_back().ParseFromString(bytes);
    return messages;
  }
  std::vector<std::string> Calls(const std::string& server, std::string_view hook) const;
  bool AskedWithin(const std::string& server, std::string_view hook, size_t count,
                   milliseconds time = kPatience) const;

  // The container of the last creation that the runtime got.
  cri::ContainerConfig Created();
};

// "PreRunPodSandbox", in quotes, as in a hook file.
inline constexpr char kRunPodPoint[] = "\"PreRunPodSandbox\"";
inline constexpr char kCreatePoint[] = "\"PreCreateContainer\"";
inline constexpr char kUpdatePoint[] = "\"PreUpdateContainerResources\"";

}  // namespace resmgr::test
