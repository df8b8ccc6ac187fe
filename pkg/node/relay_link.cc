// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/relay_link.h"

#include <utility>

namespace resmgr {

RelayLink::RelayLink(const DoorContext& context, const std::string& runtime_socket,
                     const HandlerAliases* aliases, Told told)
    : told_(std::move(told)) {
  connections_.push_back(std::make_unique<RuntimeConnection>(context.loop, context.flushes,
                                                             runtime_socket,
                                                             /*image_socket=*/"", aliases));
  teller_.emplace(*connections_.front(), told_.updated);
}

RelayLink::RelayLink(const DoorContext& context, Backends& backends, Told told)
    : told_(std::move(told)), backends_(&backends) {
  std::vector<RuntimeClient*> clients;
  for (const Backends::Backend& backend : backends.all()) {
    connections_.push_back(std::make_unique<RuntimeConnection>(
        context.loop, context.flushes, backend.socket, backend.image_socket, backends.aliases()));
    clients.push_back(connections_.back().get());
  }
  clients_.emplace(context.loop, backends, std::move(clients),
                   RuntimeClients::Events{.connected = [this] { events_.connected(); },
                                          .joined = [this] { events_.joined(); },
                                          .disconnected = [this] { events_.disconnected(); }});
  teller_.emplace(*clients_, told_.updated);
}

// A connect to a unix socket succeeds or fails at once, so this does not wait.
template <typename Attempt>
void RelayLink::TryEach(const Attempt& attempt) {
  trying_ = true;
  for (size_t i = 0; i < connections_.size(); ++i)
    attempt(i);
  trying_ = false;
  if (came_.empty()) return;
  const std::vector<size_t> came = std::exchange(came_, {});
  clients_ ? clients_->OnConnected(came) : events_.connected();
}

void RelayLink::Connect(RuntimeEvents events) {
  events_ = std::move(events);
  TryEach([this](size_t i) {
    connections_[i]->Start({.connected = [this, i] { OnConnected(i); },
                            .disconnected = [this, i] { OnDisconnected(i); },
                            .happened =
                                [this, i](const ContainerEvent& event) {
                                  if (backends_ != nullptr &&
                                      backends_->IsEventOfOther(i, event.id))
                                    return;
                                  told_.happened(event);
                                  TellEvent(event);
                                },
                            .listing = backends_ == nullptr ? told_.listing : nullptr});
  });
}

void RelayLink::OnConnected(size_t runtime) {
  told_.connected();
  came_.push_back(runtime);
  if (trying_) return;
  TryEach([this](size_t i) { (void)connections_[i]->EnsureConnected(); });
}

void RelayLink::OnDisconnected(size_t runtime) {
  clients_ ? clients_->OnDisconnected(runtime) : events_.disconnected();
}

Status RelayLink::EnsureConnected() {
  Status first;
  bool any = false;
  TryEach([&](size_t i) {
    const Status status = connections_[i]->EnsureConnected();
    any = any || status.ok();
    if (first.ok()) first = status;
  });
  return any ? OkStatus() : first;
}

void RelayLink::LeaveEventsToClient(bool leave) {
  for (const auto& connection : connections_)
    connection->LeaveEventsToClient(leave);
}

}  // namespace resmgr
