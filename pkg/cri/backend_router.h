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
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Finds out which runtime has an id that is not known. It lists what all runtimes have, over
// connections of its own, with at most one run of lists at a time at each. Loop's thread only.
class BackendRouter {
 public:
  // A list that takes longer has failed.
  static constexpr std::chrono::seconds kListTimeout{10};

  // All of these must outlive it.
  BackendRouter(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends);
  ~BackendRouter();

  Backends& backends() { return backends_; }
  ImageNeeds& image_needs() { return image_needs_; }

  struct Wanted {
    IdOwners::Kind kind;
    std::string id;
    std::string service;  // the one to ask ("/runtime.v1.RuntimeService")
    std::chrono::milliseconds patience = kListTimeout;
  };
  // Lists everything, then runs `done`, never inside this call: as soon as one runtime has exactly
  // this id, so that the call does not wait for a slow runtime that has nothing to do with it; else
  // when all have answered, except those that hang. Runs of lists that are under way were perhaps
  // answered before the id was made, so the next ones count. Unavailable names the first runtime
  // that could not be listed; what the others have is known all the same.
  void Search(Wanted wanted, std::function<void(Status)> done);

 private:
  struct Peer;
  struct Searching;

  void Begin(size_t backend, std::string_view service);
  void List(size_t backend, std::string_view service, IdOwners::Kind kind,
            IdOwners::ListBegin begin);
  void OnListed(size_t backend, const Status& status);
  // A run of lists has ended, or is not to be waited for.
  void Tell(size_t backend, uint64_t run, const Status& status);
  void EndThoseThatAreOver();

  EventLoop& loop_;
  Backends& backends_;
  ImageNeeds image_needs_;
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Searching>> searches_;
};

// Where one call goes. Made for each call that the request of which decides it.
class CallRouting {
 public:
  // nullptr: the default runtime serves such calls.
  static std::unique_ptr<CallRouting> Begin(BackendRouter& router, const Method& method);

  CallRouting(BackendRouter& router, const Method& method, const CallRoute& route);

  // Chooses by the request, runs `done` at once or later, and never after the destructor. Not OK:
  // no runtime can be chosen, and the call is to be refused with this. `patience` is for a search.
  void Choose(std::string_view request, std::chrono::milliseconds patience,
              std::function<void(Status)> done);

  // After Choose: all of them. Else the one that backend() is.
  bool all() const { return all_; }
  size_t position() const { return backend_; }
  const Backends::Backend& backend() const { return backends().all()[backend_]; }
  const Backends& backends() const { return router_.backends(); }
  // Where all are asked: what the outcome at this one is without asking it; nullopt: it is asked.
  std::optional<Status> Settled(size_t backend) const {
    return settled_.empty() ? std::nullopt : settled_[backend];
  }
  // Where it serves the call.
  std::string_view SocketOf(const Backends::Backend& backend) const;
  // The reply is a stream of messages.
  bool streams() const { return route_.by == CallRoute::By::kEach; }
  // How the replies of all become one (CallRoute::merge).
  MergeReplies merge() const { return route_.merge; }
  // Whether what backend() answers is to pass through Rewrite.
  bool RewritesReply() const { return !all_ && route_.image_ids != ImageIds::In::kNone; }
  // A message of it as the client is to see it; nullopt: as it is.
  std::optional<std::string> Rewrite(std::string_view message);
  // Whether OnReply looks at the message.
  bool ReadsReply() const;

  // The call was carried out. Learns ids from it. Not OK: the runtime gave an id that another one
  // has, so that the client must not get it.
  Status OnReply(std::string_view message);
  // Why the client gets an error in place of the reply.
  const Status& refusal() const { return refusal_; }
  // The same where all were asked: each one's message. Removes the entries whose id belongs to
  // another runtime.
  void OnReplies(std::vector<h2::SliceQueue>& messages);
  // The part of a stream's message without such entries, as the client is to see it; nullopt: all
  // of it, "": nothing.
  std::optional<std::string> OwnPart(size_t runtime, std::string_view message) const;

 private:
  Status ChooseAgain(const Status& listed);
  // Not OK: the image is to be removed nowhere.
  Status SpareThoseInNeed(const ImageNeeds::Needs& needs);
  Status Claim(IdOwners::Kind kind, std::string_view message);
  std::optional<std::string> Shown(std::string_view message, std::optional<std::string> own) const;

  BackendRouter& router_;
  const CallRoute route_;
  const std::string service_;
  const bool about_images_;
  Logger& log_;
  std::string id_;       // of the request
  std::string image_;    // likewise
  std::string pod_uid_;  // of the new pod sandbox
  bool filtered_ = false;
  IdOwners::ListBegin list_begin_;
  size_t backend_ = 0;
  bool all_ = false;
  std::vector<std::optional<Status>> settled_;
  Status refusal_;
  Lifetime lifetime_;
};

}  // namespace resmgr
