"use strict";
// Orders: their buttons, the question before each, and what came of it. Helpers and samples: console.js.

function orderButtons(node, now) {
  const lead = make("button", "Make leader"), rank = make("button", "Priority");
  lead.id = `lead-${node.name}`;
  rank.id = `rank-${node.name}`;
  lead.setAttribute("aria-label", `Make ${node.name} the leader`);
  rank.setAttribute("aria-label", `Priority of ${node.name}`);
  lead.disabled = role(node, now) !== "replica";
  lead.onclick = () => confirmOrder(`Hand leadership from ${now.leader ?? "nobody"} to ${node.name}? Writes stand ` +
    "still for some milliseconds; none is lost or refused.", "/switchover", { candidate: node.name });
  rank.onclick = () => confirmOrder(`Set the priority of ${node.name}? Who has a higher one leads rather; ` +
    "leadership may move.", "/priority", { name: node.name, priority: node.priority });
  return [lead, " ", rank];
}

function showPause(now) {
  const text = now.paused ? "The group is paused: nothing hands leadership over or expels a member by itself. If the " +
    "leader fails, another one is elected all the same." : "";
  if ($("paused").textContent !== text) $("paused").textContent = text;
  $("pause").hidden = !takesOrders;
  $("pause").textContent = now.paused ? "Resume the group" : "Pause the group";
  $("pause").onclick = () => now.paused
    ? confirmOrder("Resume the group? What would have moved leadership during the pause may do so now.", "/resume", {})
    : confirmOrder("Pause the group? Until you resume it, nothing hands leadership over or expels a member by " +
      "itself. Writes go on; if the leader fails, another one is elected all the same.", "/pause", {});
}

function confirmOrder(question, path, order) {
  $("ask").textContent = question;
  $("token").value = sessionStorage.getItem("token") ?? "";
  // What is not shown must not be required either.
  $("number-label").hidden = $("number").disabled = path !== "/priority";
  $("number").value = order.priority ?? "";
  $("confirm").returnValue = "no";
  $("no").onclick = () => $("confirm").close("no");
  $("confirm").onclose = async () => {
    if ($("confirm").returnValue !== "yes") return;
    sessionStorage.setItem("token", $("token").value);
    if (path === "/priority") order.priority = $("number").valueAsNumber;
    const what = ["order", path.slice(1), ...Object.values(order)].join(" ");
    const say = came => addEvents([{ time: new Date().toISOString(), what: `${what}: ${came}` }]);
    try {
      const headers = { "Content-Type": "application/json", Authorization: `Bearer ${$("token").value}` };
      const answer = await fetch(path, { method: "POST", body: JSON.stringify(order), headers });
      say(await answer.text());
    } catch (error) {
      say(`no answer (${error.message}); whether it was carried out is not known`);
    }
  };
  $("confirm").showModal();
}
