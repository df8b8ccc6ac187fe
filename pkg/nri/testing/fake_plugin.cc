// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/testing/fake_plugin.h"

#include <utility>

#include <sys/socket.h>

#include "pkg/nri/protocol.h"
#include "pkg/ttrpc/frame.h"

namespace resmgr::nri::test {
namespace {

// Longer than anything takes on a busy machine.
constexpr std::chrono::milliseconds kTimeout{60'000};

int32_t EventsOf(const FakePluginOptions& options) {
  if (options.events) return *options.events;
  return options.dialect == Dialect::k012 ? 0x1fff : 0x7ff;
}

}  // namespace

FakePlugin::FakePlugin(EventLoop& loop, UniqueFd socket, FakePluginOptions options)
    : options_(std::move(options)), fd_(socket.get()) {
  trunk_.emplace(loop, std::move(socket), [this](const Status& why) {
    lost = why;
    runtime_->Lose(why);
  });
  runtime_.emplace(loop, *trunk_, kRuntimeConnection, budget_);
  plugin_.emplace(loop, *trunk_, kPluginConnection, budget_, kPluginService, Methods());
  if (options_.registers) Register();
}

FakePlugin::~FakePlugin() = default;

void FakePlugin::Register() {
  api::RegisterPluginRequest request;
  request.set_plugin_name(options_.name);
  request.set_plugin_idx(options_.index);
  if (options_.dialect == Dialect::k012 || options_.says_version)
    request.set_nri_version("v0.12.0");
  runtime_->Call(kRuntimeService, "RegisterPlugin", request.SerializeAsString(), kTimeout,
                 [this](const StatusOr<std::string>& answer) { registration = answer.status(); });
}

void FakePlugin::Tell(const std::string& what, const std::string& pod,
                      const std::string& container) {
  told.push_back(what + " " + pod + (container.empty() ? "" : "/" + container));
}

void FakePlugin::Answer(const Reply& reply, StatusOr<std::string> answer) {
  if (garbage_) answer = std::string("\xff\xff");
  if (long_) return SendLongAnswer();
  if (hangs_) {
    held_.emplace_back([reply, answer = std::move(answer)] { reply(answer); });
  } else {
    reply(std::move(answer));
  }
}

// Written past the server, which would refuse it. The stream is the one of the first question after
// Configure and Synchronize.
void FakePlugin::SendLongAnswer() {
  constexpr uint32_t kStream = 5;
  std::string body(ttrpc::kLongestMessage + 1, '\0');
  const auto header =
      Encode(ttrpc::FrameHeader{.length = static_cast<uint32_t>(body.size()),
                                .stream = kStream,
                                .type = static_cast<uint8_t>(ttrpc::FrameType::kResponse),
                                .flags = 0});
  trunk_->Send(kPluginConnection, {header.data(), header.size()}, std::move(body));
}

void FakePlugin::Release() {
  hangs_ = false;
  for (const auto& answer : std::exchange(held_, {}))
    answer();
}

void FakePlugin::BreakTrunk() {
  const std::string bytes(16, '\xff');
  ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void FakePlugin::Die() {
  plugin_.reset();
  runtime_.reset();
  trunk_.reset();
}

void FakePlugin::UpdateContainers(const std::vector<api::ContainerUpdate>& updates, size_t times) {
  api::UpdateContainersRequest request;
  for (const api::ContainerUpdate& each : updates)
    *request.add_update() = each;
  for (size_t i = 0; i < times; ++i) {
    runtime_->Call(
        kRuntimeService, "UpdateContainers", request.SerializeAsString(), kTimeout,
        [this](const StatusOr<std::string>& answer) {
          if (!answer.ok()) {
            update_answers.emplace_back(answer.status());
            return;
          }
          update_answers.emplace_back(api::UpdateContainersResponse())->ParseFromString(*answer);
        });
  }
}

void FakePlugin::Synchronize(const std::string& payload, const Reply& reply) {
  api::SynchronizeRequest request;
  request.ParseFromString(payload);
  ++pieces;
  const bool more = request.more() && options_.dialect != Dialect::k061;
  synchronized = !more;
  inventory.MergeFrom(request);
  inventory.clear_more();
  api::SynchronizeResponse response;
  response.set_more(more);
  hangs_ = hangs_ || options_.hangs_at_inventory;
  if (synchronized) {
    told.emplace_back("Synchronize");
    for (const api::ContainerUpdate& each : sync_updates)
      *response.add_update() = each;
  }
  Answer(reply, response.SerializeAsString());
}

template <typename Request, typename Response>
ttrpc::Server::Method FakePlugin::Serve(const char* name,
                                        std::function<StatusOr<Response>(const Request&)>& answer) {
  return [this, name, &answer](const std::string& payload, std::chrono::nanoseconds,
                               const Reply& reply) {
    Request request;
    request.ParseFromString(payload);
    if constexpr (requires { request.container(); }) {
      Tell(name, request.pod().name(), request.container().name());
    } else {
      Tell(name, request.pod().name(), "");
    }
    const StatusOr<Response> response = answer ? answer(request) : Response();
    if (response.ok()) {
      Answer(reply, response->SerializeAsString());
    } else {
      Answer(reply, response.status());
    }
  };
}

ttrpc::Server::Method FakePlugin::ServeEvent(const char* name, api::Event kind) {
  return
      [this, name, kind](const std::string& payload, std::chrono::nanoseconds, const Reply& reply) {
        api::StateChangeEvent request;
        std::string what = name;
        if (kind == api::EVENT_UNKNOWN) {
          request.ParseFromString(payload);
          what = what + " " + MethodOf(request.event());
        } else {
          api::PostCreateContainerRequest own;
          own.ParseFromString(payload);
          request = StateChangeOf(kind, std::move(own));
        }
        Tell(what, request.pod().name(), request.container().name());
        const Status status = event ? event(request) : OkStatus();
        if (status.ok()) {
          Answer(reply, std::string());
        } else {
          Answer(reply, status);
        }
      };
}

ttrpc::Server::Methods FakePlugin::Methods() {
  ttrpc::Server::Methods methods;
  methods["Configure"] = [this](const std::string& payload, std::chrono::nanoseconds,
                                const Reply& reply) {
    configured.emplace();
    configured->ParseFromString(payload);
    told.emplace_back("Configure");
    api::ConfigureResponse response;
    response.set_events(EventsOf(options_));
    Answer(reply, response.SerializeAsString());
  };
  methods["Synchronize"] = [this](const std::string& payload, std::chrono::nanoseconds,
                                  const Reply& reply) { Synchronize(payload, reply); };
  methods["Shutdown"] = [this](const std::string&, std::chrono::nanoseconds, const Reply& reply) {
    shut_down = true;
    Answer(reply, std::string());
  };
  methods["CreateContainer"] = Serve("CreateContainer", create);
  methods["UpdateContainer"] = Serve("UpdateContainer", update);
  methods["StopContainer"] = Serve("StopContainer", stop);
  methods["StateChange"] = ServeEvent("StateChange", api::EVENT_UNKNOWN);
  if (options_.dialect != Dialect::k012) return methods;
  methods["UpdatePodSandbox"] = Serve("UpdatePodSandbox", update_pod);
  methods["ValidateContainerAdjustment"] = Serve("ValidateContainerAdjustment", validate);
  for (const api::Event kind : kStateChanges)
    methods[MethodOf(kind)] = ServeEvent(MethodOf(kind), kind);
  return methods;
}

api::StateChangeEvent EventOf(api::Event event, std::string_view pod, std::string_view container) {
  auto about = About<api::StateChangeEvent>(pod, container);
  about.set_event(event);
  if (container.empty()) about.clear_container();
  return about;
}

}  // namespace resmgr::nri::test
