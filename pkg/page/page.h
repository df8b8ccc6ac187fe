// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "pkg/node/node_page.h"
#include "pkg/page/loop_questions.h"

namespace resmgr {

// A read-only page about the node for browsers:
//
//   /page/                    HTML, its style and its scripts (pkg/page/web, compiled in)
//   /page/data/status         what cri-resmgr-ctl shows with -o json (admin_service.h) of status,
//             /topology       topology,
//             /containers     containers,
//             /pools          pools,
//             /history        the last acts of history,
//             /explain?what=  and of explain, of the containers that `what` names
//
// GET and HEAD only. Data is 503 where the event loop is late, and where too much is asked for
// (LoopQuestions::Limits).
//
// There is no password: who reaches the port reads it. A web site that a reader's browser shows
// meanwhile does not: nothing allows other origins, data is refused to requests that a browser
// marks as another site's, and every request to a host name that is not this node's, so that the
// name of such a site cannot be made to lead here (DNS rebinding). Scripts and styles are those of
// the page alone, no request goes elsewhere, and nothing may frame it.
class Page final : public NodePage {
 public:
  struct Options {
    // Of the admin socket; those that this page asks change nothing and answer at once.
    std::function<UnaryServer::Methods(const NodeView& view)> methods{};
    // Names by which this node may be asked, in small letters, besides numbers and "localhost".
    std::set<std::string, std::less<>> hosts{};
    LoopQuestions::Limits limits{};
  };

  explicit Page(Options options);

  void Open(const NodeView& view) override;
  void Close() override;
  HttpAnswer Answer(const HttpRequest& request) override;

 private:
  HttpAnswer AnswerData(const HttpRequest& request, std::string_view name);

  const Options options_;
  LoopQuestions questions_;
};

// The name of this machine, and the host of "HOST:PORT" where that is a name.
std::set<std::string, std::less<>> OwnHosts(std::string_view address);

}  // namespace resmgr
