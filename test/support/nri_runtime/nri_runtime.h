// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::test {

namespace nri_api = ::nri::pkg::api::v1alpha1;

// A runtime's NRI at a socket, for daemons in processes of their own. It treats its plugins as
// NRI's library does in CRI-O 1.34, containerd 2.2 and newer:
//  - a plugin that is lost stays in the list until the end of the next request;
//  - a request leaves out plugins that are lost or do not answer in time, and closes the latter;
//  - a creation is refused where one of these has subscribed to ValidateContainerAdjustment.
// Runs only while one of its methods does. Thread-compatible.
class NriRuntime {
 public:
  struct Options {
    std::string name = "cri-o";
    std::string version = "1.35.0";
    std::string nri_version = {};                      // as sent by hosts since 0.12
    std::chrono::milliseconds request_timeout{2'000};  // of a plugin
  };

  static StatusOr<std::unique_ptr<NriRuntime>> Start(const std::string& socket, Options options);
  ~NriRuntime();
  NriRuntime(const NriRuntime&) = delete;
  NriRuntime& operator=(const NriRuntime&) = delete;

  // The pods and containers that every connecting plugin is told.
  nri_api::SynchronizeRequest inventory;

  // Waits until `plugins` plugins have been synchronized since the start. False: not in time.
  bool AwaitSynchronized(int plugins);
  // Runs until the condition holds. False: not in time.
  bool Await(const std::function<bool()>& condition,
             std::chrono::milliseconds patience = std::chrono::seconds(20));
  int synchronized() const { return synchronized_; }
  int connections() const { return connections_; }  // since the start
  // The events that the last plugin has subscribed to: bit (event - 1) stands for an event.
  int32_t events() const { return events_; }
  // The updates that plugins asked for by calls of their own.
  const std::vector<nri_api::ContainerUpdate>& updates() const { return updates_; }

  // The plugins' answers about a creation; several adjustments are merged. Internal: a plugin has
  // refused it, or a validator is lost.
  StatusOr<nri_api::CreateContainerResponse> CreateContainer(
      const nri_api::CreateContainerRequest& request);
  // Sends an event whose answer has no changes.
  void Tell(nri_api::Event event, const nri_api::PodSandbox& pod,
            const nri_api::Container& container);

 private:
  class Plugin;

  NriRuntime(ListeningSocket listener, Options options);
  void Accept();
  StatusOr<std::string> Ask(Plugin& plugin, std::string_view method, const std::string& request);
  Status Validate(const nri_api::CreateContainerRequest& request);
  void RemoveLost();

  const Options options_;
  EventLoop loop_;
  ListeningSocket listener_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  int connections_ = 0;
  int synchronized_ = 0;
  int32_t events_ = 0;
  std::vector<nri_api::ContainerUpdate> updates_;
  EventLoop::HandlePtr accepting_;
};

// The creation of container "NAME-id" in pod "NAME-pod", of a Guaranteed pod with `cpus` CPUs, or
// of a BestEffort one for 0.
nri_api::CreateContainerRequest NriCreation(const std::string& name, int cpus);

}  // namespace resmgr::test
