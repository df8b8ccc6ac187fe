// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "pkg/node/node_view.h"
#include "pkg/page/loop_questions.h"

namespace resmgr {

// The name of this machine; "" if it has none.
std::string HostName();

// A read-only page about the node for browsers:
//
//   /                         leads to /page/
//   /page/                    HTML, its style and its scripts (pkg/page/web, compiled in)
//   /page/data/status         what cri-resmgr-ctl shows with -o json (admin_service.h) of status,
//             /topology       topology,
//             /containers     containers,
//             /pools          pools,
//             /history        the last acts of history,
//             /explain?what=  and of explain, of the containers that `what` names
//             /top, /nodes    what containers and memory nodes use, as `top` and `top nodes`
//             /busy           [{"id","state","busyPercent"}] of the CPUs, as `top cpus`
//             /node           {"name","time"}: the name of this machine, and the time (RFC 3339)
//
// GET and HEAD only. Data is 503 when the event loop is late, and when too many questions are asked
// (LoopQuestions::Limits).
//
// There is no password: everyone who can reach the port can read the page. Other web sites in a
// reader's browser cannot: other origins are not allowed, data is refused to requests that a
// browser marks as another site's, and so is every request to a host name that is not this node's,
// so that the name of such a site cannot be pointed here (DNS rebinding). Only the page's own
// scripts and styles run, no request goes elsewhere, and no other page may frame it.
class Page final : public NodePage {
 public:
  struct Options {
    // The methods of the admin socket. The page uses only methods that change nothing and answer at
    // once.
    std::function<UnaryServer::Methods(const NodeView& view)> methods{};
    // Names of this node in lower case that requests may use, besides addresses and "localhost".
    std::set<std::string, std::less<>> hosts{};
    LoopQuestions::Limits limits{};
    std::string node_name = HostName();
  };

  explicit Page(Options options);

  void Open(const NodeView& view) override;
  void Close() override;
  HttpAnswer Answer(const HttpRequest& request) override;

 private:
  HttpAnswer Choose(const HttpRequest& request);
  HttpAnswer AnswerData(const HttpRequest& request, std::string_view name);

  const Options options_;
  LoopQuestions questions_;
};

// The name of this machine and the host of "HOST:PORT", without empty ones.
std::set<std::string, std::less<>> OwnHosts(std::string_view address);

}  // namespace resmgr
