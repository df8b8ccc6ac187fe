// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// The protocol variant of a plugin, by the release of NRI that it is built with.
enum class Dialect {
  k061,  // StateChange, all pods and containers in one message, no version
  k08,   // the same, but takes pods and containers in pieces
  k012,  // own methods for all events besides StateChange, sends its version
};

struct FakePluginOptions {
  Dialect dialect = Dialect::k012;
  std::string index = "10";
  std::string name = "fake";
  // Its subscription. Default: all but validation, as far as the dialect has it.
  std::optional<int32_t> events{};
  bool registers = true;
  // It hangs when it gets all pods and containers, until Release.
  bool hangs_at_inventory = false;
  // Sends a version although its dialect does not.
  bool says_version = false;
};

// A plugin that connects over `socket` and answers by its functions; an unset one changes nothing.
// All requests are recorded in `told`, as "CreateContainer pod/container", those by StateChange as
// "StateChange StartContainer pod/container". Loop's thread only.
class FakePlugin {
 public:
  FakePlugin(EventLoop& loop, UniqueFd socket, FakePluginOptions options = {});
  ~FakePlugin();
  FakePlugin(const FakePlugin&) = delete;
  FakePlugin& operator=(const FakePlugin&) = delete;

  // The functions that answer.
  std::function<StatusOr<api::CreateContainerResponse>(const api::CreateContainerRequest&)> create;
  std::function<StatusOr<api::UpdateContainerResponse>(const api::UpdateContainerRequest&)> update;
  std::function<StatusOr<api::StopContainerResponse>(const api::StopContainerRequest&)> stop;
  std::function<StatusOr<api::UpdatePodSandboxResponse>(const api::UpdatePodSandboxRequest&)>
      update_pod;
  std::function<StatusOr<api::ValidateContainerAdjustmentResponse>(
      const api::ValidateContainerAdjustmentRequest&)>
      validate;
  std::function<Status(const api::StateChangeEvent&)> event;
  // Changes that it wants after it has taken all pods and containers.
  std::vector<api::ContainerUpdate> sync_updates;

  // From now on answers wait until Release; requests are still recorded in `told`.
  void Hang() { hangs_ = true; }
  void Release();
  // From now on it sends no valid protobuf.
  void TalkGarbage() { garbage_ = true; }
  // The next answer is longer than ttrpc allows.
  void SendLongAnswers() { long_ = true; }
  // Sends bytes that do not form a frame of the trunk.
  void BreakTrunk();
  void Die();
  // Asks for changes of containers `times` times without waiting for an answer. `update_answers`
  // gets the answers in their order.
  void UpdateContainers(const std::vector<api::ContainerUpdate>& updates, size_t times = 1);
  std::vector<StatusOr<api::UpdateContainersResponse>> update_answers;
  // The answer to its registration.
  std::optional<Status> registration;
  void Register();

  std::optional<api::ConfigureRequest> configured;
  api::SynchronizeRequest inventory;  // all pieces together
  size_t pieces = 0;
  bool synchronized = false;
  bool shut_down = false;  // the host has announced its end
  std::optional<Status> lost;
  std::vector<std::string> told;

 private:
  using Reply = ttrpc::Server::Reply;

  ttrpc::Server::Methods Methods();
  // Serves a method by the function that answers it.
  template <typename Request, typename Response>
  ttrpc::Server::Method Serve(const char* name,
                              std::function<StatusOr<Response>(const Request&)>& answer);
  // Serves an event; its request has a pod and maybe a container.
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

// Builds a request with a pod and a container, as far as events need them.
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
