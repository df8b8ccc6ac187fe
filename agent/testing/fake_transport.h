// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agent/http.h"
#include "pkg/base/json.h"

namespace resmgr::agent {

// An API server that a test plays itself: it sees each request and answers at any time.
// Thread-compatible.
class FakeTransport : public HttpTransport {
 public:
  std::unique_ptr<Call> Send(HttpRequest request, Data data, Done done) override {
    open_->push_back({std::move(request), std::move(data), std::move(done), ++last_});
    ++sent_;
    return std::make_unique<Handle>(open_, last_);
  }

  // Number of requests that are neither answered nor given up.
  size_t open() const { return open_->size(); }
  int sent() const { return sent_; }
  // The request whose target contains `part`; an empty request if there is none.
  HttpRequest Request(std::string_view part) const {
    const auto found = Find(part);
    return found == open_->end() ? HttpRequest{} : found->request;
  }
  bool Has(std::string_view part) const { return Find(part) != open_->end(); }

  // Each acts on the one request whose target contains `part`; false if there is none.
  bool Answer(std::string_view part, StatusOr<HttpReply> reply) {
    const auto found = Find(part);
    if (found == open_->end()) return false;
    const Done done = found->done;
    open_->erase(found);
    done(std::move(reply));
    return true;
  }
  bool Answer(std::string_view part, int status, const Json& body) {
    return Answer(part, HttpReply{.status = status, .body = JsonText(body), .retry_after = {}});
  }
  bool Stream(std::string_view part, std::string_view piece) {
    const auto found = Find(part);
    if (found == open_->end()) return false;
    const Data data = found->data;
    data(piece);
    return true;
  }

 private:
  struct Sent {
    HttpRequest request;
    Data data;
    Done done;
    int id = 0;
  };
  using List = std::list<Sent>;

  class Handle : public Call {
   public:
    Handle(std::shared_ptr<List> open, int id) : open_(std::move(open)), id_(id) {}
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() override {
      open_->remove_if([this](const Sent& sent) { return sent.id == id_; });
    }

   private:
    const std::shared_ptr<List> open_;
    const int id_;
  };

  List::iterator Find(std::string_view part) const {
    auto at = open_->begin();
    while (at != open_->end() && at->request.target.find(part) == std::string::npos)
      ++at;
    return at;
  }

  std::shared_ptr<List> open_ = std::make_shared<List>();
  int last_ = 0;
  int sent_ = 0;
};

}  // namespace resmgr::agent
