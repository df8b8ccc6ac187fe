// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cri/backends.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Finds out which runtimes have what, where an id is not known: by listing what all of them have,
// over connections of its own: at most one run of lists at a time. Loop's thread only.
class BackendRouter {
 public:
  // All of these must outlive it.
  BackendRouter(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends);
  ~BackendRouter();

  Backends& backends() { return backends_; }

  // Lists everything, then runs `done`, never inside this call. Those that come while lists are
  // under way share the next ones: the present ones may have been answered before what they look
  // for was made. `service` is the one to ask ("/runtime.v1.RuntimeService"). Unavailable names the
  // first runtime that could not be listed; what the others have is known all the same.
  void Search(std::string_view service, std::function<void(Status)> done);

 private:
  struct Listing;
  struct Waiting {
    std::string service;
    std::function<void(Status)> done;
  };

  void ListAll(std::string_view service);
  void List(size_t backend, const std::shared_ptr<Listing>& listing, IdOwners::Kind kind);
  void OnListed(const Status& status);

  Backends& backends_;
  std::vector<std::unique_ptr<UnaryClient>> clients_;
  std::vector<Waiting> waiting_;  // for the lists under way
  std::vector<Waiting> late_;     // for those that follow
  size_t lists_left_ = 0;
  Status failure_;  // of the lists under way
};

// Where one call goes. Made for each call that the request of which decides it.
class CallRouting {
 public:
  // nullptr: the default runtime serves such calls.
  static std::unique_ptr<CallRouting> Begin(BackendRouter& router, const Method& method);

  CallRouting(BackendRouter& router, const Method& method, const CallRoute& route);

  // Chooses by the request, runs `done` at once or later, and never after the destructor. Not OK:
  // no runtime can be chosen, and the call is to be refused with this.
  void Choose(std::string_view request, std::function<void(Status)> done);

  // After Choose: all of them. Else the one that backend() is.
  bool all() const { return all_; }
  size_t position() const { return backend_; }
  const Backends::Backend& backend() const { return backends().all()[backend_]; }
  const Backends& backends() const { return router_.backends(); }
  // Where it serves the call.
  std::string_view SocketOf(const Backends::Backend& backend) const;
  // The reply is a stream of messages.
  bool streams() const { return route_.by == CallRoute::By::kEach; }
  // How the replies of all become one (CallRoute::merge).
  MergeReplies merge() const { return route_.merge; }
  // Whether OnReply looks at the message.
  bool ReadsReply() const;

  // The call was carried out. Learns ids from it.
  void OnReply(std::string_view message);
  // The same where all were asked: each one's message.
  void OnReplies(const std::vector<h2::SliceQueue>& messages);

 private:
  Status ChooseAgain(const Status& listed);

  BackendRouter& router_;
  const CallRoute route_;
  const std::string service_;
  const bool about_images_;
  std::string id_;       // of the request
  std::string pod_uid_;  // of the new pod sandbox
  bool filtered_ = false;
  IdOwners::ListBegin list_begin_;
  size_t backend_ = 0;
  bool all_ = false;
  std::shared_ptr<void> alive_ = std::make_shared<char>();
};

}  // namespace resmgr
