// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_inspector.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "pkg/cri/ask_each.h"
#include "pkg/cri/handler_aliases.h"
#include "pkg/cri/inventory.h"
#include "pkg/cri/runtime_facts.h"
#include "pkg/cri/status_reply.h"

namespace resmgr {

namespace {

namespace v1 = ::runtime::v1;

// Status calls in flight at once while everything is inspected.
constexpr size_t kInspectionWidth = 32;

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

}  // namespace

// One run of InspectAll: both lists, then the status of each of their entries. Its callbacks keep
// it alive.
class RuntimeInspector::Inspection : public std::enable_shared_from_this<Inspection> {
 public:
  Inspection(RuntimeInspector& inspector, RuntimeAccess::Done<Everything> done)
      : inspector_(inspector), done_(std::move(done)) {}

  void Start() {
    inspector_.Call(
        "ListPodSandbox", "",
        [self = shared_from_this()](const StatusOr<std::string>& reply) { self->OnPods(reply); });
  }

 private:
  // A listed object, and whether it still exists.
  template <typename Facts>
  struct Entry {
    Facts facts;
    bool gone = false;
  };

  void OnPods(const StatusOr<std::string>& reply) {
    auto pods = reply.ok() ? ReadPodList(*reply, inspector_.aliases_) : reply.status();
    if (!pods.ok()) {
      done_(Annotate(pods.status(), "listing pod sandboxes"));
      return;
    }
    for (Pod& pod : pods->pods) {
      sandboxes_.emplace_back().facts.pod = std::move(pod);
    }
    inspector_.Call("ListContainers", "",
                    [self = shared_from_this()](const StatusOr<std::string>& list) {
                      self->OnContainers(list);
                    });
  }

  void OnContainers(const StatusOr<std::string>& reply) {
    auto containers = reply.ok() ? ReadContainerList(*reply) : reply.status();
    if (!containers.ok()) {
      done_(Annotate(containers.status(), "listing containers"));
      return;
    }
    for (RuntimeContainer& container : *containers) {
      containers_.emplace_back().facts.container = std::move(container);
    }
    AskEach::Start({.count = sandboxes_.size() + containers_.size(),
                    .width = kInspectionWidth,
                    .ask =
                        [self = shared_from_this()](size_t number, AskEach::Answered answered) {
                          self->Ask(number, std::move(answered));
                        },
                    .all_answered = [self = shared_from_this()] { self->Finish(); }});
  }

  void Ask(size_t number, AskEach::Answered answered) {
    if (number < sandboxes_.size()) {
      Entry<SandboxFacts>& entry = sandboxes_[number];
      inspector_.InspectSandbox(entry.facts.pod.id, Take(entry, std::move(answered)));
    } else {
      Entry<ContainerFacts>& entry = containers_[number - sandboxes_.size()];
      inspector_.InspectContainer(
          entry.facts.container.id,
          [pod = entry.facts.container.pod_id,
           take = Take(entry, std::move(answered))](StatusOr<ContainerFacts> facts) {
            // The list always has the pod's id, a status only in the runtime's info.
            if (facts.ok()) facts->container.pod_id = pod;
            take(std::move(facts));
          });
    }
  }

  template <typename Facts>
  RuntimeAccess::Done<Facts> Take(Entry<Facts>& entry, AskEach::Answered answered) {
    return
        [self = shared_from_this(), &entry, answered = std::move(answered)](StatusOr<Facts> facts) {
          if (facts.ok()) {
            entry.facts = *std::move(facts);
          } else if (facts.status().code() == StatusCode::kUnavailable) {
            self->lost_ = facts.status();
          } else {
            entry.gone = facts.status().code() == StatusCode::kNotFound;
          }
          answered();
        };
  }

  void Finish() {
    if (!lost_.ok()) {
      done_(lost_);
      return;
    }
    Everything everything;
    Keep(sandboxes_, everything.sandboxes);
    Keep(containers_, everything.containers);
    done_(std::move(everything));
  }

  template <typename Facts>
  static void Keep(std::vector<Entry<Facts>>& entries, std::vector<Facts>& kept) {
    for (Entry<Facts>& entry : entries) {
      if (!entry.gone) kept.push_back(std::move(entry.facts));
    }
  }

  RuntimeInspector& inspector_;
  RuntimeAccess::Done<Everything> done_;
  std::vector<Entry<SandboxFacts>> sandboxes_;
  std::vector<Entry<ContainerFacts>> containers_;
  Status lost_;  // set if the runtime went away meanwhile
};

RuntimeInspector::Peer::Peer(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket)
    : client_(loop, flushes, socket) {}

void RuntimeInspector::Peer::Call(std::string_view method, const std::string& message,
                                  std::chrono::milliseconds timeout, UnaryClient::Done done) {
  if (!client_.connected()) {
    old_version_ = false;
    // The call reports a failure, since it finds no connection then.
    (void)client_.Connect(nullptr);
  }
  std::string old_path = fmt::format("/runtime.v1alpha2.{}", method);
  if (old_version_) return client_.Call(old_path, message, timeout, std::move(done));
  client_.Call(fmt::format("/runtime.v1.{}", method), message, timeout,
               [this, old_path = std::move(old_path), message, timeout,
                done = std::move(done)](StatusOr<std::string> reply) mutable {
                 if (reply.status().code() != StatusCode::kUnimplemented) {
                   done(std::move(reply));
                   return;
                 }
                 client_.Call(old_path, message, timeout,
                              [this, done = std::move(done)](StatusOr<std::string> old_reply) {
                                if (old_reply.status().code() != StatusCode::kUnimplemented) {
                                  old_version_ = true;
                                }
                                done(std::move(old_reply));
                              });
               });
}

RuntimeInspector::RuntimeInspector(EventLoop& loop, h2::FlushQueue& flushes,
                                   const std::string& runtime_socket,
                                   const std::string& image_socket, const HandlerAliases* aliases)
    : aliases_(aliases),
      runtime_(loop, flushes, runtime_socket),
      images_(loop, flushes, image_socket) {}

void RuntimeInspector::Call(std::string_view method, const std::string& message,
                            UnaryClient::Done done) {
  runtime_.Call(fmt::format("RuntimeService/{}", method), message, kCallTimeout, std::move(done));
}

void RuntimeInspector::AskVersion(Done<Version> done) {
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

void RuntimeInspector::InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) {
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

void RuntimeInspector::InspectContainer(const ContainerId& id, Done<ContainerFacts> done) {
  Call("ContainerStatus", EncodeVerboseContainerStatusRequest(id),
       ReadInto<ContainerFacts>(std::move(done), ReadContainerFacts));
}

void RuntimeInspector::InspectImage(std::string_view reference, Done<ImageFacts> done) {
  images_.Call("ImageService/ImageStatus", EncodeVerboseImageStatusRequest(reference), kCallTimeout,
               ReadInto<ImageFacts>(std::move(done),
                                    [reference = std::string(reference)](std::string_view reply) {
                                      return ReadImageFacts(reply, reference);
                                    }));
}

void RuntimeInspector::InspectAll(Done<Everything> done) {
  std::make_shared<Inspection>(*this, std::move(done))->Start();
}

void RuntimeInspector::UpdateContainer(const ContainerId& id, const ResourceChange& change,
                                       std::function<void(Status)> done) {
  Call("UpdateContainerResources", EncodeUpdateRequest(id, change), OnlyStatus(std::move(done)));
}

void RuntimeInspector::StopContainer(const ContainerId& id, std::chrono::seconds grace,
                                     std::function<void(Status)> done) {
  v1::StopContainerRequest request;
  request.set_container_id(std::string(id.value()));
  request.set_timeout(grace.count());
  runtime_.Call("RuntimeService/StopContainer", request.SerializeAsString(), grace + kCallTimeout,
                OnlyStatus(std::move(done)));
}

void RuntimeInspector::StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  v1::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(std::string(id.value()));
  Call("StopPodSandbox", request.SerializeAsString(), OnlyStatus(std::move(done)));
}

void RuntimeInspector::RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) {
  v1::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(std::string(id.value()));
  Call("RemovePodSandbox", request.SerializeAsString(), OnlyStatus(std::move(done)));
}

}  // namespace resmgr
