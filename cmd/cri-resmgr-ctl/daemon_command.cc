// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/daemon_command.h"

#include <chrono>
#include <utility>

#include "pkg/base/table.h"
#include "pkg/cri/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

// A new configuration waits until the runtime has moved every container.
constexpr std::chrono::seconds kTimeout{60};

std::string PlaceText(const Reply& place) {
  return fmt::format("cpus {} mems {}", Cell(place, "cpus"), Cell(place, "mems"));
}

}  // namespace

void DaemonCommand::Declare(CommandLine& line) {
  line.Choice("o", {"table", "json"}, "The form of the output.", &output_);
  DeclareMore(line);
}

Status DaemonCommand::Run(std::ostream& out) {
  RESMGR_ASSIGN_OR_RETURN(const Reply request, Request());
  RESMGR_ASSIGN_OR_RETURN(
      const std::string text,
      AskDaemon(socket_, Method(), request.dump(-1, ' ', false, Reply::error_handler_t::replace)));
  if (output_ == "json") {
    out << text << '\n';
    return OkStatus();
  }
  const Reply reply = Reply::parse(text, nullptr, false);
  if (reply.is_discarded()) return Internal("the daemon's answer is not JSON");
  try {
    out << Table(reply);
  } catch (const Reply::exception& error) {
    return Internal("the daemon's answer is not as expected: {}", error.what());
  }
  return OkStatus();
}

StatusOr<std::string> AskDaemon(const std::string& socket, std::string_view method,
                                std::string_view request) {
  RESMGR_RETURN_IF_ERROR(Annotate(CheckUnixPath(socket), "-socket"));
  EventLoop loop;
  h2::FlushQueue flushes(loop);
  UnaryClient client(loop, flushes, socket);
  const Status connected = client.Connect([](const Status&) {});
  if (!connected.ok()) {
    return Unavailable("cri-resmgr is not reached: {}", Message(connected));
  }
  StatusOr<std::string> result = Unavailable("no answer from {}", socket);
  client.Call(fmt::format("/cri_resmgr.v1.Admin/{}", method), request, kTimeout,
              [&](StatusOr<std::string> reply) {
                result = std::move(reply);
                loop.Stop();
              });
  loop.Run();
  return result;
}

std::string Cell(const Reply& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "-";
  std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  return text.empty() ? "-" : text;
}

std::string MovesTable(const Reply& moves) {
  if (moves.empty()) return "no container moves\n";
  std::vector<TableRow> rows = {{"CONTAINER", "FROM", "TO", "REASON"}};
  for (const Reply& move : moves) {
    rows.push_back({Cell(move, "container"), PlaceText(move.at("from")), PlaceText(move.at("to")),
                    Cell(move.at("to"), "reason")});
  }
  return FormatTable(rows);
}

}  // namespace resmgr
