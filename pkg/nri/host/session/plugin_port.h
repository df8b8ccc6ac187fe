// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/ttrpc/multiplexer.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// All pods and containers of a node at one time, encoded as Synchronize requests, all but the last
// with `more` (NRI 0.7). Made once and shared by all plugins that connect while nothing changes:
// for 1,000 containers it takes 14 of the 59 ms that 16 plugins cost the host (nri-host-bench).
struct SyncMessages {
  // A pod or container that is left out because it is too long for one message.
  struct TooLong {
    std::string id;
    size_t bytes = 0;
  };

  std::vector<ttrpc::SharedBytes> messages;  // at least one
  std::vector<TooLong> left_out;
};
using SharedSyncMessages = std::shared_ptr<const SyncMessages>;

// Builds the messages: each has as many objects as fit. Objects are encoded once, in place.
// Thread-compatible.
class SyncWriter {
 public:
  // Bytes of one message: 512 KiB less than ttrpc::kLongestMessage, which limits the message with
  // the envelope around it.
  static constexpr size_t kMostBytes = size_t{3584} << 10;

  explicit SyncWriter(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // Pods must be added before containers.
  void Add(const api::PodSandbox& pod);
  void Add(const api::Container& container);
  // Called once, last.
  SharedSyncMessages Finish();

 private:
  template <typename Object>
  void Append(uint32_t field, const Object& object);
  void EndMessage();

  const size_t most_bytes_;
  SyncMessages all_;
  std::string bytes_;  // the message that is being filled
};

// The settings of one plugin (configuration `nri.Host.Plugins`).
struct PluginSettings {
  // Whether a request goes on or is refused if the plugin does not answer in time or is lost. Its
  // own refusals always count.
  FailurePolicy failure = FailurePolicy::kIgnore;
  std::chrono::milliseconds request_timeout{2'000};
  // Containers are created only while this plugin is connected, and after it has answered.
  bool required = false;
  // The plugin gets containers' real ids as soon as they exist, for plugins that look into cgroups:
  // the id that it knows then changes after the creation. Without this option an id never changes.
  bool real_ids = false;
};

// A connected plugin, as its callers see it. Each question is answered once, later or at once;
// questions to one plugin are asked one after the other, in their order: existing plugins know no
// other order, and most cannot handle two at a time. Answers:
//   OK, with the plugin's changes;
//   kDeadlineExceeded: none within `timeout`, counted from here (time in the queue included);
//   kUnavailable: the plugin is lost, or the question is longer than NRI can carry;
//   any other status: the plugin's own answer; it refuses.
// Loop's thread only.
class PluginPort {
 public:
  template <typename Response>
  using Done = std::function<void(StatusOr<Response>)>;

  virtual ~PluginPort() = default;

  // Index and name, by which plugins are ordered: "10-logger".
  virtual const std::string& full_name() const = 0;
  virtual const PluginSettings& settings() const = 0;
  // Whether it has subscribed to the event.
  virtual bool Wants(api::Event event) const = 0;

  // Asks by the event's own method, with the encoded request.
  template <typename Response>
  void Ask(api::Event event, std::string request, std::chrono::milliseconds timeout,
           Done<Response> done) {
    auto response = std::make_shared<Response>();
    AskFor(event, std::move(request), timeout, response,
           [response, done = std::move(done)](const Status& status) {
             status.ok() ? done(std::move(*response)) : done(status);
           });
  }
  // Ends the connection: unanswered and later questions get kUnavailable.
  virtual void End(const Status& why) = 0;
  // Sends any other event, by the plugin's own method for it, or by StateChange.
  using Answered = std::function<void(const Status&)>;
  virtual void Notify(const api::StateChangeEvent& event, std::chrono::milliseconds timeout,
                      Answered answered) = 0;

 protected:
  // Fills in the response before an answer that is OK.
  virtual void AskFor(api::Event event, std::string request, std::chrono::milliseconds timeout,
                      std::shared_ptr<google::protobuf::Message> response, Answered answered) = 0;
};

// The owner of pods and containers for the host of the connections. Loop's thread only.
class PluginListener {
 public:
  virtual ~PluginListener() = default;

  // Returns all existing pods and containers, for a plugin that was just configured. Later events
  // must be sent to its port, which delivers them after these messages.
  virtual SharedSyncMessages Inventory(PluginPort& plugin) = 0;
  // The plugin has taken the inventory and may be asked questions; it wants these updates.
  virtual void OnReady(PluginPort& plugin, std::vector<api::ContainerUpdate> updates) = 0;
  // A ready plugin asks for updates of its own accord. `done` gets the updates that failed.
  using Updated = std::function<void(std::vector<api::ContainerUpdate> failed)>;
  virtual void OnUpdateContainers(PluginPort& plugin, const api::UpdateContainersRequest& request,
                                  Updated done) = 0;
  // A plugin that has got Inventory is lost. Its port answers kUnavailable from now on, and is
  // destroyed after this turn of the loop.
  virtual void OnLost(PluginPort& plugin, const Status& why) = 0;
};

}  // namespace resmgr::nri
