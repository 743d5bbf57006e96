"use strict";
// Orders: their buttons, the question before each, and what came of it. Helpers and samples: console.js.

function orderButtons(name) {
  const lead = make("button", "Make leader"), rank = make("button", "Priority");
  lead.id = `lead-${name}`;
  rank.id = `rank-${name}`;
  lead.setAttribute("aria-label", `Make ${name} the leader`);
  rank.setAttribute("aria-label", `Priority of ${name}`);
  lead.onclick = () => mayLead(of(latest(), name), latest()) && confirmOrder(lead.id, "Hand leadership from " +
    `${latest().leader ?? "nobody"} to ${name}? Writes stand still for some milliseconds; none is lost or refused.`,
    "/switchover", { candidate: name });
  rank.onclick = () => confirmOrder(rank.id, `Set the priority of ${name}? Who has a higher one leads rather; ` +
    "leadership may move.", "/priority", { name, priority: of(latest(), name).priority });
  return [lead, " ", rank];
}

const mayLead = (node, now) => role(node, now) === "replica";

// Not `disabled`: a button that is would lose the focus.
function showOrders(node, now) {
  const lead = $(`lead-${node.name}`);
  lead.hidden = $(`rank-${node.name}`).hidden = !takesOrders;
  const disabled = `${!mayLead(node, now)}`;
  if (lead.getAttribute("aria-disabled") !== disabled) lead.setAttribute("aria-disabled", disabled);
}

function showPause(now) {
  const text = now.paused ? "The group is paused: nothing hands leadership over or expels a member by itself. If the " +
    "leader fails, another one is elected all the same." : "";
  put($("paused"), text);
  $("pause").hidden = !takesOrders;
  put($("pause"), now.paused ? "Resume the group" : "Pause the group");
  $("pause").onclick = () => now.paused
    ? confirmOrder("pause", "Resume the group? What would have moved leadership during the pause may do so now.", "/resume", {})
    : confirmOrder("pause", "Pause the group? Until you resume it, nothing hands leadership over or expels a member by " +
      "itself. Writes go on; if the leader fails, another one is elected all the same.", "/pause", {});
}

// `button`: the id of the one that was pressed, which has the focus again afterwards.
function confirmOrder(button, question, path, order) {
  $("ask").textContent = question;
  $("token").value = sessionStorage.getItem("token") ?? "";
  // What is not shown must not be required either.
  $("number-label").hidden = $("number").disabled = path !== "/priority";
  $("number").value = order.priority ?? "";
  $("confirm").returnValue = "no";
  $("no").onclick = () => $("confirm").close("no");
  $("confirm").onclose = async () => {
    if ($(button)) $(button).focus();
    if ($("confirm").returnValue !== "yes") return;
    sessionStorage.setItem("token", $("token").value);
    if (path === "/priority") order.priority = $("number").valueAsNumber;
    const what = ["order", path.slice(1), ...Object.values(order)].join(" ");
    const say = came => {
      addEvents([{ time: new Date().toISOString(), what: `${what}: ${came}` }], false);
      announce(`${what}: ${came}`);
    };
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
