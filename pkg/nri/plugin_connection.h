// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/nri/call_dump.h"
#include "pkg/nri/plugin_handler.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/ttrpc/client.h"
#include "pkg/ttrpc/multiplexer.h"
#include "pkg/ttrpc/server.h"

namespace resmgr::nri {

// A plugin at a runtime's NRI socket: registers, is configured, takes the runtime's pods and
// containers, and passes events to its handler. Connects again with growing pauses after a loss.
// Loop's thread only.
class PluginConnection {
 public:
  struct Options {
    std::string socket = "/var/run/nri/nri.sock";
    std::string name = "cri-resmgr";
    std::string index = "90";  // two digits; plugins with lower ones are asked first
    std::chrono::milliseconds registration_timeout{5'000};
    // Time from the connection until the runtime has sent its inventory. A runtime that accepts the
    // plugin and then forgets it, for example after an error, is connected again.
    std::chrono::milliseconds synchronization_timeout{60'000};
    // Gets the calls in both directions; outlives the connection. May be null.
    dump::Dumper* dumper = nullptr;
    // Pauses between two tries: doubled from the first to the last.
    std::chrono::milliseconds first_pause{500};
    std::chrono::milliseconds last_pause{30'000};
  };

  // Bytes of a runtime's inventory, all pieces together. The number of fields is bounded, too
  // (bounded_message.h).
  static constexpr size_t kLongestInventory = size_t{64} << 20;

  // kInvalidArgument: a name is not of [A-Za-z0-9_.+-], which hosts require since 0.12, or an index
  // is not two digits.
  static Status Check(const Options& options);

  // All outlive this object. `options` have passed Check.
  PluginConnection(EventLoop& loop, PluginHandler& handler, Options options);
  PluginConnection(const PluginConnection&) = delete;
  PluginConnection& operator=(const PluginConnection&) = delete;

  // Connects now or as soon as a runtime serves the socket.
  void Start();
  // Uses a connected socket, without another try after it: for plugins that a runtime has started,
  // and for tests.
  void StartOn(UniqueFd socket);

  // True once the runtime's pods and containers are known: events follow.
  bool synchronized() const { return phase_ == Phase::kSynchronized; }

  // Why the runtime that connected last is not served (CheckRuntime). The plugin connects again
  // after the longest pause, since another version may run then.
  const Status& refusal() const { return refusal_; }

  // Asks the runtime to change containers; `failed` are those that it could not change.
  // kUnavailable while it is not synchronized or when the connection is lost meanwhile.
  using Updated = std::function<void(StatusOr<std::vector<api::ContainerUpdate>> failed)>;
  void UpdateContainers(std::vector<api::ContainerUpdate> updates, Updated done);

 private:
  enum class Phase { kDisconnected, kRegistering, kConfigured, kSynchronized };
  using Answer = StatusOr<std::string>;

  void ConnectLater();
  void Register(UniqueFd socket);
  // `done` runs once, with the answer or the error.
  void CallRuntime(std::string_view method, const google::protobuf::MessageLite& request,
                   std::chrono::milliseconds timeout, std::function<void(Answer)> done);
  void OnLost(const Status& why);
  ttrpc::Server::Methods Methods();
  // A method with a request of this type.
  template <typename Request>
  ttrpc::Server::Method Serve(std::function<void(Request, const ttrpc::Server::Reply&)> method);
  // A method that the handler answers.
  template <typename Response, typename Request>
  ttrpc::Server::Method ServeDecision(
      void (PluginHandler::*decide)(const Request&, PluginHandler::Reply<Response>));
  // The method of one of kStateChanges.
  ttrpc::Server::Method ServeEvent(api::Event event);
  Answer Configure(const api::ConfigureRequest& request);
  void Refuse(const Status& why);
  Answer Synchronize(const std::string& payload);
  Status TakePiece(const std::string& payload, api::SynchronizeRequest& piece);
  void ForgetInventory();
  Status CheckSynchronized() const;

  EventLoop& loop_;
  PluginHandler& handler_;
  const Options options_;
  Logger& log_;
  ttrpc::MemoryBudget budget_;
  CallDump dump_;
  Phase phase_ = Phase::kDisconnected;
  bool again_ = true;  // connect again after a loss
  bool complained_ = false;
  bool told_ = false;  // OnConfigured was called for this connection
  Status refusal_;
  Backoff pauses_;
  EventLoop::HandlePtr retry_;
  EventLoop::HandlePtr synchronization_;  // deadline of the synchronization
  DestroyLater<std::shared_ptr<void>> lost_{loop_};
  // Destroyed in the reverse order.
  std::unique_ptr<ttrpc::Multiplexer> trunk_;
  std::unique_ptr<ttrpc::Client> runtime_;
  std::unique_ptr<ttrpc::Server> plugin_;
  // The received pieces of an inventory.
  api::SynchronizeRequest inventory_;
  size_t inventory_bytes_ = 0;
  size_t inventory_fields_ = 0;
};

}  // namespace resmgr::nri
