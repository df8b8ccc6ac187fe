// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/ttrpc/client.h"
#include "pkg/ttrpc/multiplexer.h"
#include "pkg/ttrpc/server.h"

namespace resmgr::nri::test {

namespace api = ::nri::pkg::api::v1alpha1;

// What a plugin of the field speaks, by the release of NRI that it is built with.
enum class Dialect {
  k061,  // StateChange, all pods and containers in one message, says no version
  k08,   // the same, but takes pods and containers in pieces
  k012,  // methods of their own for all events besides StateChange, says its version
};

struct FakePluginOptions {
  Dialect dialect = Dialect::k012;
  std::string index = "10";
  std::string name = "fake";
  // What it subscribes to. Default: all but validation, as far as the dialect has it.
  std::optional<int32_t> events{};
  bool registers = true;
  // It hangs when it gets all pods and containers, until Release.
  bool hangs_at_inventory = false;
  // Says a version though its dialect does not.
  bool says_version = false;
};

// A plugin that connects over `socket` and answers as its functions say; one that is not set
// changes nothing. Whatever it is asked is told in `told`, as "CreateContainer pod/container";
// what came by StateChange as "StateChange StartContainer pod/container". Loop's thread only.
class FakePlugin {
 public:
  FakePlugin(EventLoop& loop, UniqueFd socket, FakePluginOptions options = {});
  ~FakePlugin();
  FakePlugin(const FakePlugin&) = delete;
  FakePlugin& operator=(const FakePlugin&) = delete;

  // What it answers.
  std::function<StatusOr<api::CreateContainerResponse>(const api::CreateContainerRequest&)> create;
  std::function<StatusOr<api::UpdateContainerResponse>(const api::UpdateContainerRequest&)> update;
  std::function<StatusOr<api::StopContainerResponse>(const api::StopContainerRequest&)> stop;
  std::function<StatusOr<api::UpdatePodSandboxResponse>(const api::UpdatePodSandboxRequest&)>
      update_pod;
  std::function<StatusOr<api::ValidateContainerAdjustmentResponse>(
      const api::ValidateContainerAdjustmentRequest&)>
      validate;
  std::function<Status(const api::StateChangeEvent&)> event;
  // Changes that it wants when it has taken all pods and containers.
  std::vector<api::ContainerUpdate> sync_updates;

  // From now on answers wait until Release; what was asked is in `told` all the same.
  void Hang() { hangs_ = true; }
  void Release();
  // Answers, and everything else, are no protobuf.
  void TalkGarbage() { garbage_ = true; }
  // The next question is answered with a message that is longer than ttrpc allows.
  void SendLongAnswers() { long_ = true; }
  // Bytes that are no frame of a trunk.
  void BreakTrunk();
  void Die();
  // Asks for changes of containers, so many times without waiting for an answer. `update_answers`
  // are told the answers, in the order in which they come.
  void UpdateContainers(const std::vector<api::ContainerUpdate>& updates, size_t times = 1);
  std::vector<StatusOr<api::UpdateContainersResponse>> update_answers;
  // The answer to its registration.
  std::optional<Status> registration;
  void Register();

  std::optional<api::ConfigureRequest> configured;
  api::SynchronizeRequest inventory;  // all pieces together
  size_t pieces = 0;
  bool synchronized = false;
  bool shut_down = false;  // the host has said that it ends
  std::optional<Status> lost;
  std::vector<std::string> told;

 private:
  using Reply = ttrpc::Server::Reply;

  ttrpc::Server::Methods Methods();
  // Of a method with a function that answers it.
  template <typename Request, typename Response>
  ttrpc::Server::Method Serve(const char* name,
                              std::function<StatusOr<Response>(const Request&)>& answer);
  // Of an event; its request has a pod and maybe a container.
  ttrpc::Server::Method ServeEvent(const char* name, api::Event event);
  void Synchronize(const std::string& payload, const Reply& reply);
  void SendLongAnswer();
  void Tell(const std::string& what, const std::string& pod, const std::string& container);
  void Answer(const Reply& reply, StatusOr<std::string> answer);

  const FakePluginOptions options_;
  ttrpc::MemoryBudget budget_;
  bool hangs_ = false;
  bool garbage_ = false;
  bool long_ = false;
  std::vector<std::function<void()>> held_;
  int fd_;  // the trunk's
  std::optional<ttrpc::Multiplexer> trunk_;
  std::optional<ttrpc::Client> runtime_;
  std::optional<ttrpc::Server> plugin_;
};

// A pod and a container, as far as events need them.
template <typename Request>
Request About(std::string_view pod, std::string_view container) {
  Request request;
  request.mutable_pod()->set_id(std::string(pod));
  request.mutable_pod()->set_name(std::string(pod));
  request.mutable_container()->set_id(std::string(container));
  request.mutable_container()->set_name(std::string(container));
  return request;
}
api::StateChangeEvent EventOf(api::Event event, std::string_view pod, std::string_view container);

}  // namespace resmgr::nri::test
