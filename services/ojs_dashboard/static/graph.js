/** A workflow's graph: layers by the longest path, members that share their neighbours as one node. */

import { count } from './format.js';
import { html, svg } from './lit-html.js';
import { address } from './router.js';

const MOST_ALIKE = 12;
const MOST_NODES = 300;
const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [150, 38, 50, 14];

/**
 * @typedef {{id: string, label: string, state: string, share: number, href: string, after: string[], layer: number, row: number}} Node
 */

/** @returns {import('./parts.js').Part} */
export function graph(
	/** @type {string} */ kind,
	/** @type {import('./openapi.js').WorkflowStep[]} */ steps,
	/** @type {number} */ jobs,
) {
	const nodes = folded(
		steps.map((step) => made(step, kind)),
		kind === 'group' || kind === 'batch' ? jobs : steps.length,
	);
	if (nodes.length > MOST_NODES)
		return html`<p class="dim">${count(nodes.length, 'node')} are too many to draw; the list below has all.</p>`;
	place(nodes);
	const width = (Math.max(...nodes.map((node) => node.layer), 0) + 1) * (WIDTH + GAP_X);
	const height = (Math.max(...nodes.map((node) => node.row), 0) + 1) * (HEIGHT + GAP_Y);
	const byId = new Map(nodes.map((node) => [node.id, node]));
	const x = (/** @type {Node} */ node) => node.layer * (WIDTH + GAP_X);
	const y = (/** @type {Node} */ node) => node.row * (HEIGHT + GAP_Y);
	const edges = nodes.flatMap((node) => node.after.map((id) => /** @type {const} */ ([byId.get(id), node])));
	return html`<div class="scroll" tabindex="0" role="region" aria-label="Graph">
		<svg class="graph" width=${width} height=${height} viewBox="-1 -1 ${width} ${height}" role="group" aria-label="Steps and what they wait for">
			${edges.map(([from, to]) => {
				if (!from) return '';
				const [x1, y1, x2, y2] = [x(from) + WIDTH, y(from) + HEIGHT / 2, x(to), y(to) + HEIGHT / 2];
				return svg`<path d="M${x1} ${y1}C${x1 + GAP_X / 2} ${y1} ${x2 - GAP_X / 2} ${y2} ${x2} ${y2}" />`;
			})}
			${nodes.map(
				(node) => svg`<a href=${node.href} aria-label=${`${node.label}: ${node.state}`}>
				<rect class=${`node ${node.state}`} x=${x(node)} y=${y(node)} width=${WIDTH} height=${HEIGHT} rx="5" />
				<rect class=${`bar ${node.state}`} x=${x(node)} y=${y(node) + HEIGHT - 4} width=${WIDTH * node.share} height="4" />
				<text x=${x(node) + 8} y=${y(node) + 16}>${cut(node.label)}</text>
				<text class="dim" x=${x(node) + 8} y=${y(node) + 30}>${node.state}</text>
			</a>`,
			)}
		</svg>
	</div>`;
}

const cut = (/** @type {string} */ label) => (label.length > 20 ? `${label.slice(0, 19)}…` : label);

/** @returns {Node} */
function made(/** @type {import('./openapi.js').WorkflowStep} */ step, /** @type {string} */ kind) {
	const total = step.steps_total ?? step.jobs_total;
	const share = step.state === 'completed' ? 1 : total ? (step.steps_completed ?? step.jobs_completed ?? 0) / total : 0;
	const label = `${step.name ?? (kind === 'dag' ? step.id : step.type)}${total ? ` (${total})` : ''}`;
	return {
		id: step.id,
		label,
		state: step.state,
		share,
		href: step.job_id ? address(`/jobs/${step.job_id}`) : '#steps',
		after: step.depends_on ?? [],
		layer: 0,
		row: 0,
	};
}

/** @returns {Node[]} Many nodes that wait for the same and are waited for by the same are drawn as one with its progress. */
function folded(/** @type {Node[]} */ nodes, /** @type {number} */ total) {
	const before = new Map(/** @type {[string, string[]][]} */ ([]));
	for (const node of nodes) for (const id of node.after) before.set(id, [...(before.get(id) ?? []), node.id]);
	const alike = Map.groupBy(nodes, (node) => JSON.stringify([node.after.toSorted(), (before.get(node.id) ?? []).toSorted()]));
	const names = new Map(/** @type {[string, string][]} */ ([]));
	const kept = [...alike.values()].flatMap((group) => {
		const first = group[0];
		if (!first || group.length <= MOST_ALIKE) return group;
		for (const node of group) names.set(node.id, first.id);
		const ended = group.filter((node) => node.share === 1).length;
		const state = group.find((node) => node.state === 'failed')?.state ?? (ended === group.length ? 'completed' : 'running');
		const all = alike.size === 1 ? Math.max(total, group.length) : group.length;
		return [{ ...first, label: count(all, 'member'), state, share: ended / all, href: '#steps' }];
	});
	return kept.map((node) => ({ ...node, after: [...new Set(node.after.map((id) => names.get(id) ?? id))] }));
}

function place(/** @type {Node[]} */ nodes) {
	const byId = new Map(nodes.map((node) => [node.id, node]));
	const depths = new Map(/** @type {[string, number][]} */ ([]));
	const depth = (/** @type {Node} */ node) => {
		const known = depths.get(node.id);
		if (known !== undefined) return known;
		depths.set(node.id, 0);
		let most = 0;
		for (const id of node.after) {
			const other = byId.get(id);
			if (other) most = Math.max(most, depth(other) + 1);
		}
		depths.set(node.id, most);
		return most;
	};
	const rows = new Map(/** @type {[number, number][]} */ ([]));
	for (const node of nodes) {
		node.layer = depth(node);
		node.row = rows.get(node.layer) ?? 0;
		rows.set(node.layer, node.row + 1);
	}
}
