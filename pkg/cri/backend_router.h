// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cri/backends.h"
#include "pkg/cri/image_needs.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Finds the runtime of an unknown id: lists the objects of all runtimes over its own connections.
// Each runtime answers at most one run of lists at a time. Loop's thread only.
class BackendRouter {
 public:
  // A list that takes longer fails.
  static constexpr std::chrono::seconds kListTimeout{10};

  // All of these must outlive this object.
  BackendRouter(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends);
  ~BackendRouter();

  Backends& backends() { return backends_; }
  ImageNeeds& image_needs() { return image_needs_; }

  struct Wanted {
    IdOwners::Kind kind;
    std::string id;
    std::string service;  // the service to ask ("/runtime.v1.RuntimeService")
    std::chrono::milliseconds patience = kListTimeout;
  };
  // Lists the pods and containers of all runtimes. Runs `done`, never inside this call, as soon as
  // one runtime has exactly this id, else when all but hanging runtimes have answered. If a runtime
  // is being listed already, its next run counts, since it may have answered before the id existed.
  // kUnavailable names the first runtime that could not be listed; the lists of the others are
  // learned anyway.
  void Search(Wanted wanted, std::function<void(Status)> done);

 private:
  struct Peer;
  struct Searching;

  void Begin(size_t backend, std::string_view service);
  void List(size_t backend, std::string_view service, IdOwners::Kind kind,
            IdOwners::ListBegin begin);
  void OnListed(size_t backend, const Status& status);
  // Called when a runtime's run of lists has ended: searches that wait for this run go on.
  void Tell(size_t backend, uint64_t run, const Status& status);
  void EndThoseThatAreOver();

  EventLoop& loop_;
  Backends& backends_;
  ImageNeeds image_needs_;
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Searching>> searches_;
};

// Created for each call whose route depends on its request.
class CallRouting {
 public:
  // nullptr: all calls of this method go to the default runtime.
  static std::unique_ptr<CallRouting> Begin(BackendRouter& router, const Method& method);

  CallRouting(BackendRouter& router, const Method& method, const CallRoute& route);

  // Chooses by the request, runs `done` at once or later, and never after the destructor. Not OK:
  // no runtime can be chosen, and the call must be refused with this status. `patience` limits a
  // search.
  void Choose(std::string_view request, std::chrono::milliseconds patience,
              std::function<void(Status)> done);

  // After Choose: whether the call goes to all runtimes; if not, it goes to backend().
  bool all() const { return all_; }
  size_t position() const { return backend_; }
  const Backends::Backend& backend() const { return backends().all()[backend_]; }
  const Backends& backends() const { return router_.backends(); }
  // If all(): the outcome that is used for this runtime instead of asking it; nullopt: it is asked.
  std::optional<Status> Settled(size_t backend) const {
    return settled_.empty() ? std::nullopt : settled_[backend];
  }
  // The runtime's socket that serves the call.
  std::string_view SocketOf(const Backends::Backend& backend) const;
  // Whether the reply is a stream of messages.
  bool streams() const { return route_.by == CallRoute::By::kEach; }
  // How the replies of all are merged (CallRoute::merge).
  MergeReplies merge() const { return route_.merge; }
  // Whether the call changes the runtimes (CallRoute::changes).
  bool changes() const { return route_.changes; }
  // Whether the reply of backend() must pass through Rewrite.
  bool RewritesReply() const { return !all_ && route_.image_ids != ImageIds::In::kNone; }
  // Returns a message of the reply of backend() as the client gets it; nullopt: unchanged.
  std::optional<std::string> Rewrite(std::string_view message);
  // Whether OnReply needs the message.
  bool ReadsReply() const;

  // Called when the call has succeeded; learns ids from the reply. Not OK: the runtime gave an id
  // that another runtime has, so the client must not get it.
  Status OnReply(std::string_view message);
  // The error from OnReply, which the client gets instead of the reply.
  const Status& refusal() const { return refusal_; }
  // OnReply for a call to all runtimes, with the message of each. Removes the entries whose id
  // belongs to another runtime.
  void OnReplies(std::vector<h2::SliceQueue>& messages);
  // Removes the entries whose id belongs to another runtime from a message of a streamed reply;
  // nullopt: unchanged, "": nothing is left.
  std::optional<std::string> OwnPart(size_t runtime, std::string_view message) const;

 private:
  Status ChooseAgain(const Status& listed);
  // Sets the outcome of runtimes that keep the image. Not OK: no runtime may remove it.
  Status SpareThoseInNeed(const ImageNeeds::Needs& needs);
  Status Claim(IdOwners::Kind kind, std::string_view message);
  std::optional<std::string> Shown(std::string_view message, std::optional<std::string> own) const;

  BackendRouter& router_;
  const CallRoute route_;
  const std::string service_;
  const bool about_images_;
  Logger& log_;
  std::string id_;       // id in the request
  std::string image_;    // image in the request
  std::string pod_uid_;  // uid of the new pod sandbox
  bool filtered_ = false;
  IdOwners::ListBegin list_begin_;
  size_t backend_ = 0;
  bool all_ = false;
  std::vector<std::optional<Status>> settled_;
  Status refusal_;
  Lifetime lifetime_;
};

}  // namespace resmgr
