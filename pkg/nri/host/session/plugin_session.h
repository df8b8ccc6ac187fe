// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/log/log.h"
#include "pkg/metrics/plugin_stats.h"
#include "pkg/nri/host/session/host_options.h"
#include "pkg/nri/host/session/plugin_port.h"
#include "pkg/nri/host/session/question_queue.h"
#include "pkg/nri/host/session/turns.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/ttrpc/client.h"
#include "pkg/ttrpc/multiplexer.h"
#include "pkg/ttrpc/server.h"

namespace resmgr::nri {

// One connection of one plugin: it registers, is configured, takes all pods and containers in as
// many pieces as needed, and is then asked. Questions before it is ready follow the pieces. The
// session ends on a malformed answer, on repeated late answers, or when the connection is lost.
// Loop's thread only.
class PluginSession final : public PluginPort {
 public:
  // Name and configuration of a plugin that the host has started.
  struct Launched {
    std::string index;
    std::string name;
    std::string config;
  };

  class Owner {
   public:
    // The plugin has registered. The figures outlive the session.
    virtual PluginStats& StatsOf(const PluginSession& session) = 0;
    // The plugin is configured. Returns the messages that it gets.
    virtual SharedSyncMessages Inventory(PluginSession& session) = 0;
    // The plugin has taken the messages.
    virtual void OnReady(PluginSession& session, std::vector<api::ContainerUpdate> updates) = 0;
    // Called once. The session must be destroyed later, not within the call.
    virtual void OnEnded(PluginSession& session, const Status& why) = 0;

   protected:
    ~Owner() = default;
  };

  // Shared by all sessions; outlives them.
  struct Context {
    EventLoop& loop;
    const HostOptions& options;
    const RuntimeIdentity& runtime;
    Owner& owner;
    PluginListener& listener;       // gets the updates that plugins ask for
    FairTurns& turns;               // for updates that plugins ask for
    ttrpc::MemoryBudget& requests;  // of all plugins together
  };

  // Unanswered requests of a plugin for updates. More are refused.
  static constexpr size_t kMostUpdateRequests = 8;
  // Delay of a refusal, so that a plugin that asks again at once costs little.
  static constexpr std::chrono::milliseconds kRefusalDelay{100};
  // Bytes of a plugin's answers, and of its requests, that are held at a time.
  static constexpr size_t kMostHeld = size_t{16} << 20;
  // A plugin with more refused requests in a second floods the daemon: until it stops, little of
  // its data is read, and its answers count as late.
  static constexpr uint32_t kMostRefusals = 128;
  static constexpr std::chrono::milliseconds kFloodPause{100};

  // `peer` describes its process for logs: "pid 17".
  PluginSession(const Context& context, UniqueFd socket, std::string peer,
                std::optional<Launched> launched = std::nullopt);
  ~PluginSession() override;
  PluginSession(const PluginSession&) = delete;
  PluginSession& operator=(const PluginSession&) = delete;

  // Whether StatsOf was called for this session.
  bool has_figures() const { return queue_ != nullptr; }
  bool was_ready() const { return was_ready_; }
  bool has_inventory() const { return has_inventory_; }
  bool ready() const { return phase_ == Phase::kReady; }
  bool ended() const { return phase_ == Phase::kEnded; }
  const std::string& index() const { return index_; }
  const std::string& name() const { return name_; }
  uint32_t events() const { return events_; }
  // Name and process for logs: "10-logger (pid 17)".
  std::string Label() const;

  // While this session is shadowed, a ready session of the same plugin decides: this one gets all
  // events, but its answers have no effect.
  void SetShadow(bool shadow) { shadow_ = shadow; }
  // Called when the context's options have changed.
  void FindSettings();
  // Tells the plugin that the host ends, if it has been configured, and calls `done` at its answer
  // or after `timeout`.
  void Shutdown(std::chrono::milliseconds timeout, std::function<void()> done);

  const std::string& full_name() const override { return full_name_; }
  const PluginSettings& settings() const override { return *settings_; }
  bool Wants(api::Event event) const override { return (events_ & BitOf(event)) != 0; }
  void End(const Status& why) override;
  void Notify(const api::StateChangeEvent& event, std::chrono::milliseconds timeout,
              Answered answered) override;

 private:
  enum class Phase { kRegistering, kConfiguring, kSynchronizing, kReady, kEnded };
  using Answer = StatusOr<std::string>;

  ttrpc::Server::Methods Methods();
  void OnRegister(const std::string& payload, const ttrpc::Server::Reply& reply);
  Status TakeName(const api::RegisterPluginRequest& request);
  void Configure();
  void OnConfigured(const Answer& answer);
  void Synchronize();
  void OnSynchronized(const Answer& answer);
  void OnUpdateContainers(const std::string& payload, const ttrpc::Server::Reply& reply);
  void Refuse(const Status& why, size_t request_size, const ttrpc::Server::Reply& reply);
  void TakeUpdates(const std::string& payload, const ttrpc::Server::Reply& reply,
                   const FairTurns::Running& running);
  void NoteRefusal();
  bool Floods() const { return context_.loop.Now() < floods_until_; }
  void AskFor(api::Event event, std::string request, std::chrono::milliseconds timeout,
              std::shared_ptr<google::protobuf::Message> response, Answered answered) override;
  void Ask(api::Event event, Question question, std::chrono::milliseconds timeout,
           std::shared_ptr<google::protobuf::Message> response, Answered answered);
  Status Decode(api::Event event, const Answer& answer, google::protobuf::Message& response);

  const Context context_;
  Logger& log_;
  const std::string peer_;
  const std::optional<Launched> launched_;
  Phase phase_ = Phase::kRegistering;
  bool shadow_ = false;
  bool has_inventory_ = false;
  bool was_ready_ = false;
  std::string index_;
  std::string name_;
  std::string full_name_;
  const PluginSettings* settings_;
  uint32_t events_ = 0;
  size_t update_requests_ = 0;
  std::list<EventLoop::HandlePtr> refusals_;  // refusals that are still delayed
  uint32_t refused_ = 0;                      // in the present period
  EventLoop::Clock::time_point refused_since_{};
  EventLoop::Clock::time_point floods_until_{};
  std::optional<EventForms> forms_;
  SharedSyncMessages inventory_;  // while the plugin takes them
  size_t taken_ = 0;              // number of taken messages
  EventLoop::Clock::time_point sync_end_;
  EventLoop::HandlePtr registration_;
  // Members are destroyed in the reverse order.
  ttrpc::MemoryBudget budget_{kMostHeld};
  ttrpc::MemoryBudget requests_;
  ttrpc::Multiplexer trunk_;
  ttrpc::Client plugin_;
  ttrpc::Server runtime_;
  std::unique_ptr<QuestionQueue> queue_;
  Lifetime lifetime_;
};

}  // namespace resmgr::nri
