// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/uninstall.h"

#include <memory>
#include <utility>
#include <vector>

#include "pkg/admin/node_json.h"
#include "pkg/admin/report_json.h"
#include "pkg/base/json.h"
#include "pkg/classes/host_classes.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPause{50};

// The changes to come, of containers and of the host.
struct Changes {
  OrderedJson moves;
  OrderedJson host;
};

std::string AnswerText(const Changes& changes, bool done) {
  OrderedJson answer = {{"moves", changes.moves}};
  if (!changes.host.empty()) answer["host"] = changes.host;
  answer["done"] = done;
  return OrderedJsonText(answer);
}

// Looks again and again whether all is done; ends itself with the answer.
class Waiting : public std::enable_shared_from_this<Waiting> {
 public:
  Waiting(const NodeView& node, Changes changes, UnaryServer::Reply reply, milliseconds patience)
      : node_(node), changes_(std::move(changes)), reply_(std::move(reply)), left_(patience) {}

  void Look() {
    const bool given_back = node_.classes == nullptr || node_.classes->given_back();
    const bool done = node_.host.AllLetGo() && given_back;
    if (done || left_ <= milliseconds(0)) {
      reply_(AnswerText(changes_, done));
      return;
    }
    left_ -= kPause;
    timer_ = node_.loop.After(kPause, [self = shared_from_this()] {
      const EventLoop::HandlePtr over = std::move(self->timer_);
      self->Look();
    });
  }

 private:
  const NodeView& node_;
  const Changes changes_;
  const UnaryServer::Reply reply_;
  milliseconds left_;
  EventLoop::HandlePtr timer_;
};

}  // namespace

void Uninstall(const NodeView& node, bool apply, const UnaryServer::Reply& reply,
               milliseconds patience) {
  const auto planned = node.host.PreviewPolicy(nullptr);
  if (!planned.ok()) {
    reply(planned.status());
    return;
  }
  Changes changes{.moves = MovesJson(*planned), .host = OrderedJson::array()};
  if (node.classes != nullptr) changes.host = ChangedFilesJson(node.classes->report());
  if (!apply) {
    reply(AnswerText(changes, false));
    return;
  }
  node.configurator.LetGo([&node, changes, reply, patience](const Status& status) {
    if (!status.ok()) {
      reply(status);
      return;
    }
    std::make_shared<Waiting>(node, changes, reply, patience)->Look();
  });
}

}  // namespace resmgr
