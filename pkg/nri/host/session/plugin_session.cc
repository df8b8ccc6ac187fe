// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_session.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/nri/bounded_message.h"
#include "pkg/nri/protocol.h"
#include "pkg/ttrpc/frame.h"

namespace resmgr::nri {

PluginSession::PluginSession(const Context& context, UniqueFd socket, std::string peer,
                             std::optional<Launched> launched)
    : context_(context),
      log_(GetLogger("nri/host")),
      peer_(std::move(peer)),
      launched_(std::move(launched)),
      settings_(&context.options.settings),
      requests_(kMostHeld, &context.requests),
      trunk_(context.loop, std::move(socket), [this](const Status& why) { End(why); }),
      plugin_(context.loop, trunk_, kPluginConnection, budget_),
      runtime_(context.loop, trunk_, kRuntimeConnection, requests_, kRuntimeService, Methods()) {
  runtime_.OnOverrun([this] { NoteRefusal(); });
  registration_ = context_.loop.After(context_.options.registration_timeout, [this] {
    End(DeadlineExceeded("it has not registered within {} ms",
                         context_.options.registration_timeout.count()));
  });
}

PluginSession::~PluginSession() {
  context_.turns.Drop(this);
}

std::string PluginSession::Label() const {
  return full_name_.empty() ? peer_ : full_name_ + " (" + peer_ + ")";
}

void PluginSession::FindSettings() {
  settings_ = &context_.options.SettingsOf(full_name_);
  if (queue_ != nullptr) queue_->SetStrikes(context_.options.strikes);
}

ttrpc::Server::Methods PluginSession::Methods() {
  using Reply = ttrpc::Server::Reply;
  ttrpc::Server::Methods methods;
  methods["RegisterPlugin"] = [this](const std::string& payload, std::chrono::nanoseconds,
                                     const Reply& reply) { OnRegister(payload, reply); };
  methods["UpdateContainers"] = [this](const std::string& payload, std::chrono::nanoseconds,
                                       const Reply& reply) { OnUpdateContainers(payload, reply); };
  return methods;
}

// A plugin's name counts only after it was checked; plugins that the host has started have theirs
// from the host (NRI 0.6: the name in their registration is ignored).
Status PluginSession::TakeName(const api::RegisterPluginRequest& request) {
  if (!launched_) {
    RESMGR_RETURN_IF_ERROR(CheckPluginName(request.plugin_idx(), request.plugin_name()));
  }
  index_ = launched_ ? launched_->index : request.plugin_idx();
  name_ = launched_ ? launched_->name : request.plugin_name();
  full_name_ = FullPluginName(index_, name_);
  FindSettings();
  return OkStatus();
}

void PluginSession::OnRegister(const std::string& payload, const ttrpc::Server::Reply& reply) {
  if (phase_ != Phase::kRegistering) return reply(FailedPrecondition("this plugin has registered"));
  api::RegisterPluginRequest request;
  if (const Status decoded = DecodeMessage(payload, request); !decoded.ok()) {
    return reply(Annotate(decoded, "the request"));
  }
  if (const Status named = TakeName(request); !named.ok()) {
    reply(named);
    return End(named);
  }
  registration_.reset();
  forms_.emplace(!request.nri_version().empty());
  queue_ = std::make_unique<QuestionQueue>(context_.loop, plugin_, context_.owner.StatsOf(*this),
                                           context_.options.strikes,
                                           [this](const Status& why) { End(why); });
  // Answers at once, since plugins up to NRI 0.6 wait for two seconds only.
  reply(std::string());
  Configure();
}

void PluginSession::Configure() {
  phase_ = Phase::kConfiguring;
  api::ConfigureRequest request;
  if (launched_) request.set_config(launched_->config);
  request.set_runtime_name(context_.runtime.name);
  request.set_runtime_version(context_.runtime.version);
  request.set_registration_timeout(context_.options.registration_timeout.count());
  request.set_request_timeout(settings_->request_timeout.count());
  request.set_nri_version(kOurVersion);
  plugin_.Call(kPluginService, "Configure", request.SerializeAsString(), settings_->request_timeout,
               [this](const Answer& answer) { OnConfigured(answer); });
}

void PluginSession::OnConfigured(const Answer& answer) {
  if (ended()) return;
  if (!answer.ok()) return End(Annotate(answer.status(), "it was not configured"));
  api::ConfigureResponse response;
  if (const Status decoded = DecodeMessage(*answer, response); !decoded.ok()) {
    return End(Annotate(decoded, "its answer to Configure"));
  }
  events_ = SubscribedTo(response.events());
  if (const uint32_t unknown = static_cast<uint32_t>(response.events()) & ~kAllEvents) {
    log_.Warn("plugin {} asks for events that are not known here: {:#x}", Label(), unknown);
  }
  phase_ = Phase::kSynchronizing;
  has_inventory_ = true;
  inventory_ = context_.owner.Inventory(*this);
  for (const auto& [id, bytes] : inventory_->left_out)
    log_.Warn("container or pod {1} is not sent to plugin {0}: it has {2} bytes", Label(),
              Printable(id), bytes);
  sync_end_ = context_.loop.Now() + context_.options.sync_timeout;
  Synchronize();
}

void PluginSession::Synchronize() {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(sync_end_ - context_.loop.Now());
  if (left.count() <= 0) {
    return End(DeadlineExceeded("it has not taken all pods and containers within {} ms",
                                context_.options.sync_timeout.count()));
  }
  plugin_.Call(kPluginService, "Synchronize", inventory_->messages[taken_++], left,
               [this](const Answer& answer) { OnSynchronized(answer); });
}

void PluginSession::OnSynchronized(const Answer& answer) {
  if (ended()) return;
  if (!answer.ok()) return End(Annotate(answer.status(), "it has not taken pods and containers"));
  api::SynchronizeResponse response;
  if (const Status decoded = DecodeMessage(*answer, response); !decoded.ok()) {
    return End(Annotate(decoded, "its answer to Synchronize"));
  }
  const bool more = taken_ < inventory_->messages.size();
  if (more && (!response.more() || response.update_size() > 0)) {
    // A plugin older than NRI 0.7 takes the first message for the whole inventory, and would
    // replace it by the next one.
    return End(FailedPrecondition(
        "it is older than NRI 0.7, and takes no more than one message of pods and containers"));
  }
  if (more) return Synchronize();
  inventory_.reset();
  phase_ = Phase::kReady;
  was_ready_ = true;
  shadow_ = false;
  auto& updates = *response.mutable_update();
  context_.owner.OnReady(
      *this, {std::make_move_iterator(updates.begin()), std::make_move_iterator(updates.end())});
  if (!ended()) queue_->Open();
}

void PluginSession::OnUpdateContainers(const std::string& payload,
                                       const ttrpc::Server::Reply& reply) {
  if (phase_ != Phase::kReady) {
    return Refuse(FailedPrecondition("this plugin is not synchronized"), payload.size(), reply);
  }
  if (update_requests_ == kMostUpdateRequests) {
    const Status refusal = ResourceExhausted("{} requests are not answered yet", update_requests_);
    queue_->NoteRefused(refusal);
    return Refuse(refusal, payload.size(), reply);
  }
  ++update_requests_;
  context_.turns.Add(this,
                     lifetime_.Guard([this, payload, reply](const FairTurns::Running& running) {
                       TakeUpdates(payload, reply, running);
                     }));
}

void PluginSession::TakeUpdates(const std::string& payload, const ttrpc::Server::Reply& reply,
                                const FairTurns::Running& running) {
  if (ended()) return;
  api::UpdateContainersRequest request;
  if (const Status decoded = DecodeMessage(payload, request); !decoded.ok()) {
    --update_requests_;
    return Refuse(Annotate(decoded, "the request"), payload.size(), reply);
  }
  // The turn is ended explicitly, since the owner may keep the reply function for longer.
  const auto ends = std::make_shared<FairTurns::Running>(running);
  context_.listener.OnUpdateContainers(
      *this, request,
      [this, reply, ends, alive = lifetime_.token()](std::vector<api::ContainerUpdate> failed) {
        const FairTurns::Running over = std::move(*ends);
        if (alive.expired()) return;
        --update_requests_;
        api::UpdateContainersResponse response;
        for (api::ContainerUpdate& update : failed)
          *response.add_failed() = std::move(update);
        reply(response.SerializeAsString());
      });
}

void PluginSession::NoteRefusal() {
  constexpr std::chrono::seconds kWindow{1};
  const auto now = context_.loop.Now();
  if (now - refused_since_ > kWindow) {
    refused_since_ = now;
    refused_ = 0;
  }
  if (++refused_ <= kMostRefusals) return;
  if (floods_until_ == EventLoop::Clock::time_point{}) {
    log_.Warn(
        "plugin {} floods this daemon with requests: until it stops it is not waited for, and "
        "little of it is read",
        Label());
  }
  floods_until_ = now + kWindow;
  trunk_.Slow(kFloodPause);
}

// At most ttrpc::kMostRequests refusals wait here. Until a request is answered, it takes memory
// that the plugin's answers need, too, so long requests are refused at once; they need no delay,
// since they cost the plugin as much as the daemon.
void PluginSession::Refuse(const Status& why, size_t request_size,
                           const ttrpc::Server::Reply& reply) {
  constexpr size_t kLongest = kMostHeld / ttrpc::kMostRequests / 4;
  NoteRefusal();
  if (request_size > kLongest) return reply(why);
  const auto refusal = refusals_.emplace(refusals_.end());
  *refusal = context_.loop.After(kRefusalDelay, [this, refusal, why, reply] {
    const EventLoop::HandlePtr timer = std::move(*refusal);
    refusals_.erase(refusal);
    reply(why);
  });
}

void PluginSession::Shutdown(std::chrono::milliseconds timeout, std::function<void()> done) {
  if (!ready() && phase_ != Phase::kSynchronizing) return done();
  plugin_.Call(kPluginService, "Shutdown", api::Empty().SerializeAsString(), timeout,
               [done = std::move(done)](const Answer&) { done(); });
}

void PluginSession::End(const Status& why) {
  if (ended()) return;
  phase_ = Phase::kEnded;
  context_.turns.Drop(this);
  registration_.reset();
  inventory_.reset();
  refusals_.clear();
  if (queue_ != nullptr) queue_->End(why);
  plugin_.Lose(why);
  context_.owner.OnEnded(*this, why);
}

// The questions to a connected plugin.

// Treats a missing method, despite a subscription to its event, as an answer without changes,
// except for a validator, whose answer is required.
Status PluginSession::Decode(api::Event event, const Answer& answer,
                             google::protobuf::Message& response) {
  if (answer.status().code() == StatusCode::kUnimplemented &&
      event != api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT) {
    events_ &= ~BitOf(event);
    log_.Warn("plugin {} has subscribed to {} and has no method for it: it is not asked again",
              Label(), MethodOf(event));
    return OkStatus();
  }
  if (!answer.ok()) return answer.status();
  const Status decoded = DecodeMessage(*answer, response);
  if (decoded.ok()) return decoded;
  const Status why = Annotate(decoded, fmt::format("its answer to {}", MethodOf(event)));
  End(why);
  return Unavailable("{}", resmgr::Message(why));
}

void PluginSession::Ask(api::Event event, Question question, std::chrono::milliseconds timeout,
                        std::shared_ptr<google::protobuf::Message> response, Answered answered) {
  if (queue_ == nullptr) return answered(Unavailable("it has not registered"));
  // The answer of a flooding plugin comes behind all its other data, so calls do not wait for it.
  // A shadow is asked only for information: the plugin that it will replace still decides.
  const bool floods = Floods();
  if (!ended() && (shadow_ || (floods && question.tells))) {
    question.tells = true;
    queue_->Ask(std::move(question), context_.options.sync_timeout, [](const Answer&) {});
    return answered(shadow_ ? OkStatus() : DeadlineExceeded("it floods this daemon"));
  }
  if (floods) timeout = std::chrono::milliseconds(0);
  queue_->Ask(std::move(question), timeout,
              [this, event, response = std::move(response), answered = std::move(answered)](
                  const Answer& answer) { answered(Decode(event, answer, *response)); });
}

void PluginSession::AskFor(api::Event event, std::string request, std::chrono::milliseconds timeout,
                           std::shared_ptr<google::protobuf::Message> response, Answered answered) {
  Ask(event,
      {.method = MethodOf(event),
       .payload = ttrpc::Share(std::move(request)),
       .tells = event == api::EVENT_STOP_CONTAINER},
      timeout, std::move(response), std::move(answered));
}

void PluginSession::Notify(const api::StateChangeEvent& event, std::chrono::milliseconds timeout,
                           Answered answered) {
  if (!forms_) return answered(Unavailable("it has not registered"));
  Ask(event.event(), forms_->Make(event), timeout, std::make_shared<api::Empty>(),
      std::move(answered));
}

}  // namespace resmgr::nri
