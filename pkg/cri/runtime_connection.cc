// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_connection.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pkg/cri/handler_aliases.h"
#include "pkg/cri/messages.h"
#include "pkg/cri/runtime_facts.h"
#include "pkg/cri/status_reply.h"

namespace resmgr {

namespace {

namespace v1 = ::runtime::v1;

constexpr std::chrono::milliseconds kReconnectPause{250};

// Passes the reply, parsed by `read`, to `done`.
template <typename Facts, typename Read>
UnaryClient::Done ReadInto(RuntimeAccess::Done<Facts> done, Read read) {
  return [done = std::move(done), read = std::move(read)](const StatusOr<std::string>& reply) {
    done(reply.ok() ? StatusOr<Facts>(read(*reply)) : StatusOr<Facts>(reply.status()));
  };
}

UnaryClient::Done OnlyStatus(std::function<void(Status)> done) {
  return [done = std::move(done)](const StatusOr<std::string>& reply) { done(reply.status()); };
}

StatusOr<RuntimeAccess::Version> ReadVersion(std::string_view reply) {
  RESMGR_ASSIGN_OR_RETURN(const auto response, ParseReply<v1::VersionResponse>(reply));
  return RuntimeAccess::Version{.name = response.runtime_name(),
                                .version = response.runtime_version()};
}

// The handlers in a reply to Status; none if it is malformed.
std::vector<HandlerFeatures> ReadHandlers(std::string_view reply, const HandlerAliases* aliases) {
  std::vector<HandlerFeatures> handlers;
  const auto response = ParseReply<v1::StatusResponse>(reply);
  if (!response.ok()) return handlers;
  for (const v1::RuntimeHandler& handler : response->runtime_handlers()) {
    handlers.push_back({.name = handler.name(),
                        .recursive_read_only = handler.features().recursive_read_only_mounts()});
  }
  if (aliases == nullptr) return handlers;
  for (const auto& [alias, name] : aliases->table()) {
    const auto found = std::ranges::find(handlers, name, &HandlerFeatures::name);
    if (found == handlers.end()) continue;
    HandlerFeatures same = *found;
    same.name = alias;
    handlers.push_back(std::move(same));
  }
  return handlers;
}

// Calls a method of RuntimeService.
using ListCall =
    std::function<void(std::string_view method, std::string_view message, UnaryClient::Done done)>;

// Asks for both lists, one after the other.
void ListObjects(const ListCall& call, const HandlerAliases* aliases,
                 RuntimeListing::Done<RuntimeListing::Objects> done) {
  call("ListPodSandbox", "",
       [call, aliases, done = std::move(done)](const StatusOr<std::string>& reply) {
         auto pods = reply.ok() ? ReadPodList(*reply, aliases) : reply.status();
         if (!pods.ok()) return done(Annotate(pods.status(), "listing pod sandboxes"));
         call("ListContainers", "",
              [pods = *std::move(pods), done](const StatusOr<std::string>& list) mutable {
                auto containers = list.ok() ? ReadContainerList(*list) : list.status();
                if (!containers.ok())
                  return done(Annotate(containers.status(), "listing containers"));
                done(RuntimeListing::Objects{std::move(pods), *std::move(containers)});
              });
       });
}

template <typename Facts>
UnaryClient::Done AddStatusTo(Facts& listed, std::function<void(const Status&)> done) {
  return [&listed, done = std::move(done)](const StatusOr<std::string>& reply) {
    done(reply.ok() ? AddFacts(*reply, listed) : reply.status());
  };
}

}  // namespace

Status RuntimeConnection::Peer::Connect(std::function<void(const Status&)> on_loss) {
  api_ = Api::kUnknown;
  ++connects_;
  return client_.Connect(std::move(on_loss));
}

void RuntimeConnection::Peer::Call(std::string_view method, std::string_view message,
                                   std::chrono::milliseconds timeout, UnaryClient::Done done) {
  if (api_ != Api::kUnknown) {
    const std::string_view version = api_ == Api::kV1 ? "v1" : "v1alpha2";
    return client_.Call(fmt::format("/runtime.{}.{}", version, method), message, timeout,
                        std::move(done));
  }
  // A runtime that has only the other API version answers that the service is unknown.
  const auto on_reply = [this, connection = connects_,
                         path = fmt::format("/runtime.v1alpha2.{}", method),
                         text = std::string(message), timeout,
                         done = std::move(done)](StatusOr<std::string> reply) mutable {
    const bool same = connection == connects_;
    if (reply.status().code() != StatusCode::kUnimplemented) {
      if (same && reply.ok() && api_ == Api::kUnknown) api_ = Api::kV1;
      return done(std::move(reply));
    }
    client_.Call(path, text, timeout,
                 [this, same, done = std::move(done)](StatusOr<std::string> old_reply) {
                   if (same && old_reply.ok() && api_ == Api::kUnknown) api_ = Api::kV1Alpha2;
                   done(std::move(old_reply));
                 });
  };
  client_.Call(fmt::format("/runtime.v1.{}", method), message, timeout, on_reply);
}

RuntimeConnection::RuntimeConnection(EventLoop& loop, h2::FlushQueue& flushes,
                                     const std::string& runtime_socket,
                                     const std::string& image_socket, const HandlerAliases* aliases)
    : loop_(loop),
      log_(GetLogger("cri/runtime")),
      socket_(runtime_socket),
      aliases_(aliases),
      runtime_(loop, flushes, runtime_socket),
      images_(loop, flushes, image_socket.empty() ? runtime_socket : image_socket),
      event_stream_(loop, runtime_.client(), [this](const ContainerEvent& event) {
        if (events_.happened) events_.happened(event);
      }) {
  // Calls under way go on. Events have no end, and would keep the runtime from ending.
  runtime_.client().OnPeerLeaves([this] { event_stream_.Disconnected(); });
}

void RuntimeConnection::Start(Events events) {
  started_ = true;
  events_ = std::move(events);
  (void)TryConnect();  // TryConnect plans the next try itself
}

Status RuntimeConnection::EnsureConnected() {
  if (runtime_.client().connected()) return OkStatus();
  // The connection is closed, but OnLost has not run yet and will connect again.
  if (up_) return Unavailable("the runtime has just closed its connection");
  return TryConnect();
}

Status RuntimeConnection::TryConnect() {
  Status status = runtime_.Connect([this](const Status& reason) { OnLost(reason); });
  if (status.ok()) {
    retry_.reset();
    complained_ = false;
    up_ = true;
    connected_at_ = loop_.Now();
    // Events are requested before the list, so that no change between the two is missed.
    event_stream_.Connected();
    events_.connected();
    return status;
  }
  if (!std::exchange(complained_, true)) {
    log_.Warn("the runtime is not available yet, retrying: {}", Message(status));
  }
  TryLater();
  return Annotate(status, "no runtime");
}

void RuntimeConnection::TryLater() {
  retry_ = loop_.After(kReconnectPause, [this] { (void)TryConnect(); });
}

void RuntimeConnection::OnLost(const Status& reason) {
  const bool at_once = loop_.Now() - connected_at_ < kReconnectPause;
  if (!std::exchange(hangs_up_, at_once) || !at_once)
    log_.Warn("lost the runtime at {}: {}", socket_, Message(reason));
  up_ = false;
  event_stream_.Disconnected();
  if (at_once) TryLater();
  events_.disconnected();
  if (!at_once) (void)TryConnect();
}

void RuntimeConnection::Call(std::string_view method, std::string_view message,
                             UnaryClient::Done done, std::chrono::milliseconds timeout) {
  // If this fails, the call finds no connection and reports that.
  if (!started_ && !runtime_.client().connected()) (void)runtime_.Connect(nullptr);
  runtime_.Call(fmt::format("RuntimeService/{}", method), message, timeout, std::move(done));
}

void RuntimeConnection::List(Known known, Done<RuntimeListing::Result> done) {
  // If there is no connection, the list's first call makes the next one.
  const uint64_t connection = runtime_.connects() + (runtime_.client().connected() ? 0 : 1);
  const ListCall call = [this, connection](std::string_view method, std::string_view message,
                                           UnaryClient::Done answered) {
    if (runtime_.connects() <= connection) return Call(method, message, std::move(answered));
    // The list's connection is lost: its remaining questions must not go to the next connection.
    loop_.Post(lifetime_.Guard(
        [answered = std::move(answered)] { answered(Unavailable("the connection was lost")); }));
  };
  RuntimeListing::Start(
      {.list = [call,
                aliases = aliases_](auto listed) { ListObjects(call, aliases, std::move(listed)); },
       .sandbox =
           [call](SandboxFacts& facts, auto answered) {
             call("PodSandboxStatus", EncodeVerbosePodStatusRequest(facts.pod.id),
                  AddStatusTo(facts, std::move(answered)));
           },
       .container =
           [call](ContainerFacts& facts, auto answered) {
             call("ContainerStatus", EncodeVerboseContainerStatusRequest(facts.container.id),
                  AddStatusTo(facts, std::move(answered)));
           }},
      std::move(known),
      [this, connection, done = std::move(done)](StatusOr<RuntimeListing::Result> result) {
        const bool lost = !runtime_.client().connected() || runtime_.connects() != connection;
        if (result.ok() && lost) return done(Unavailable("the connection to the runtime was lost"));
        done(std::move(result));
      });
}

void RuntimeConnection::ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) {
  const bool shares = !known.pod && !known.container && shared_ != runtime_.connects();
  Done<Everything> share = shares && events_.listing ? events_.listing() : nullptr;
  List(std::move(known), [this, shares, share = std::move(share),
                          done = std::move(done)](StatusOr<RuntimeListing::Result> result) {
    if (shares && result.ok()) shared_ = runtime_.connects();
    if (share)
      share(result.ok() ? RuntimeListing::Result(*result).ToEverything()
                        : StatusOr<Everything>(result.status()));
    result.ok() ? done((*std::move(result)).ToInventory()) : done(result.status());
  });
}

void RuntimeConnection::InspectAll(Done<Everything> done) {
  List({}, [done = std::move(done)](StatusOr<RuntimeListing::Result> result) {
    result.ok() ? done((*std::move(result)).ToEverything()) : done(result.status());
  });
}

void RuntimeConnection::UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                                        std::function<void(Status)> done) {
  Call("UpdateContainerResources", EncodeUpdateRequest(id, adjustment),
       OnlyStatus(std::move(done)));
}

void RuntimeConnection::AskVersion(Done<Version> done) {
  Call("Version", "",
       ReadInto<Version>(
           [this, done = std::move(done)](StatusOr<Version> version) {
             if (!version.ok()) return done(std::move(version));
             Call("Status", "",
                  [this, version = *std::move(version),
                   done](const StatusOr<std::string>& reply) mutable {
                    if (reply.ok()) version.handlers = ReadHandlers(*reply, aliases_);
                    done(std::move(version));
                  });
           },
           ReadVersion));
}

void RuntimeConnection::InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) {
  Call("PodSandboxStatus", EncodeVerbosePodStatusRequest(id),
       ReadInto<SandboxFacts>(std::move(done), [aliases = aliases_](const std::string& reply) {
         StatusOr<SandboxFacts> facts = ReadSandboxFacts(reply);
         if (facts.ok() && aliases != nullptr) {
           Pod& pod = facts->pod;
           pod.runtime_handler = aliases->HandlerOf(pod.id.value(), pod.runtime_handler);
         }
         return facts;
       }));
}

void RuntimeConnection::InspectContainer(const ContainerId& id, Done<ContainerFacts> done) {
  Call("ContainerStatus", EncodeVerboseContainerStatusRequest(id),
       ReadInto<ContainerFacts>(std::move(done), ReadContainerFacts));
}

void RuntimeConnection::InspectImage(const PodSandboxId& /*pod*/, std::string_view reference,
                                     Done<ImageFacts> done) {
  if (!images_.client().connected()) (void)images_.Connect(nullptr);
  images_.Call("ImageService/ImageStatus", EncodeVerboseImageStatusRequest(reference), kCallTimeout,
               ReadInto<ImageFacts>(std::move(done),
                                    [reference = std::string(reference)](std::string_view reply) {
                                      return ReadImageFacts(reply, reference);
                                    }));
}

void RuntimeConnection::UpdateContainer(const ContainerId& id, const ResourceChange& change,
                                        std::function<void(Status)> done) {
  Call("UpdateContainerResources", EncodeUpdateRequest(id, change), OnlyStatus(std::move(done)));
}

void RuntimeConnection::StopContainer(const ContainerId& id, std::chrono::seconds grace,
                                      std::function<void(Status)> done) {
  v1::StopContainerRequest request;
  request.set_container_id(std::string(id.value()));
  request.set_timeout(grace.count());
  Call("StopContainer", request.SerializeAsString(), OnlyStatus(std::move(done)),
       grace + kCallTimeout);
}

void RuntimeConnection::StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  v1::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(std::string(id.value()));
  Call("StopPodSandbox", request.SerializeAsString(), OnlyStatus(std::move(done)));
}

void RuntimeConnection::RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  v1::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(std::string(id.value()));
  Call("RemovePodSandbox", request.SerializeAsString(), OnlyStatus(std::move(done)));
}

}  // namespace resmgr
