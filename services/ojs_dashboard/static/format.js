/** Texts for people: numbers with units, times, durations, and text that may be hostile. */
import { html, nothing } from './lit-html.js';

const whole = new Intl.NumberFormat('en-GB');
const short = new Intl.NumberFormat('en-GB', { maximumSignificantDigits: 3 });
const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** How much the browser's clock is ahead of the server's (ms), where that is more than an answer takes. */
export const clock = { ahead: 0 };
export const time = () => Date.now() - clock.ahead;

/** @returns {string} A whole number with its thousands apart. */
export const number = (/** @type {number | bigint | null | undefined} */ value) => (value == null ? '–' : whole.format(value));

/** @returns {string} So many things, in the singular for one. */
export function count(/** @type {number} */ value, /** @type {string} */ one, many = `${one}s`) {
	return `${number(value)} ${value === 1 ? one : many}`;
}

/** @returns {string} A rate a second; a minute where that is little. */
export function rate(/** @type {number | null | undefined} */ value) {
	if (value == null) return '–';
	if (value && value < 0.1) return `${short.format(value * 60)}/min`;
	return `${value >= 100 ? whole.format(Math.round(value)) : short.format(value)}/s`;
}

/** Rates in one unit, that of the largest, so that they can be compared by eye. */
export function inOneUnit(/** @type {(number | null | undefined)[]} */ all) {
	const [times, unit] = all.some((one) => (one ?? 0) >= 1) ? [1, '/s'] : [60, '/min'];
	return (/** @type {number | null | undefined} */ value) =>
		value == null
			? '–'
			: `${value * times >= 100 ? whole.format(Math.round(value * times)) : short.format(value * times)}${unit}`;
}

/** @returns {string} One of the percentiles of how long something took; none where nothing was measured. */
export const percentile = (
	/** @type {import('./openapi.js').Percentiles} */ of,
	/** @type {'p50' | 'p90' | 'p95' | 'p99'} */ name,
) => (of.max || of[name] ? duration(of[name]) : '–');

/** @returns {string} A duration of ISO 8601 in words; the duration itself if it isn't of days and less. */
export function lasting(/** @type {string} */ iso) {
	const found = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(iso);
	if (!found) return iso;
	const [days, hours, minutes, seconds] = found.slice(1).map((one) => Number(one ?? 0));
	return duration((((days ?? 0) * 24 + (hours ?? 0)) * 3_600 + (minutes ?? 0) * 60 + (seconds ?? 0)) * 1_000);
}

const SAID = /** @type {Record<string, string>} */ ({
	overlap_skip: 'the one before still ran',
	disabled: 'the entry was paused',
	dst_skip: 'the clocks were put forward over it',
	skip: 'the next one is skipped',
	allow: 'both run',
	cancel_previous: 'the last one is cancelled',
	enqueue: 'the next one waits for its end',
	promoted: 'due',
	claimed: 'fetched by a worker',
	acked: 'completed by its worker',
	requeued: 'handed back',
	timed_out: 'timed out',
	stalled: 'its worker sent no heartbeat for it',
	lease_expired: 'its lease ran out',
	worker_died: 'its worker fell silent',
	ttl_expired: 'expired',
	total_timed_out: 'took longer than its total timeout',
	reissued: 'pushed anew',
	reprioritised: 'got another priority',
});
/** @returns {string} A word of the API as people say it. */
export const said = (/** @type {string} */ word) => SAID[word] ?? word;

/** @returns {string} A share as per cent. */
export const percent = (/** @type {number | null | undefined} */ value) =>
	value == null ? '–' : `${short.format(value * 100)} %`;

/** @returns {string} Milliseconds in the two largest units that say something. */
export function duration(/** @type {number | null | undefined} */ ms) {
	if (ms == null) return '–';
	if (ms < 1_000) return `${short.format(Math.max(0, ms))} ms`;
	if (ms < 60_000) return `${short.format(ms / 1_000)} s`;
	const units = Object.entries({ d: 86_400, h: 3_600, min: 60, s: 1 });
	let left = Math.round(ms / 1_000);
	const parts = [];
	for (const [unit, seconds] of units) {
		const amount = Math.floor(left / seconds);
		left -= amount * seconds;
		if (amount || parts.length) parts.push(`${amount} ${unit}`);
		if (parts.length === 2) break;
	}
	return parts.filter((part) => !part.startsWith('0 ')).join(' ');
}

/** @returns {string} Bytes with a unit. */
export function bytes(/** @type {number | null | undefined} */ value) {
	if (value == null) return '–';
	const units = ['B', 'kB', 'MB', 'GB', 'TB'];
	let at = 0;
	let amount = value;
	for (; amount >= 1_000 && at < units.length - 1; at++) amount /= 1_000;
	return `${short.format(amount)} ${units[at]}`;
}

/** @returns {number} Unix milliseconds of a time as the API writes it. */
export const millis = (/** @type {string | number | null | undefined} */ time) =>
	time == null ? Number.NaN : typeof time === 'number' ? time : Date.parse(time);

/** @returns {string} How long ago a time is, or how soon. */
export function relative(/** @type {number} */ at) {
	const gap = Math.abs(time() - at);
	if (gap < 1_000) return 'now';
	const text = duration(gap < 60_000 ? Math.floor(gap / 1_000) * 1_000 : gap);
	return at > time() ? `in ${text}` : `${text} ago`;
}

/** A moment: relative, or in local time with `plain`; the pointer shows UTC. */
export function moment(/** @type {string | number | null | undefined} */ time, { plain = false } = {}) {
	const at = millis(time);
	if (Number.isNaN(at)) return html`<span class="dim">–</span>`;
	const utc = new Date(at).toISOString();
	return html`<time datetime=${utc} title="${utc.replace('T', ' ').replace('Z', ' UTC')}&#10;${local.format(at)}"
		>${plain ? local.format(at) : relative(at)}</time
	>`;
}

export const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
export const hex = (/** @type {number} */ code) => code.toString(16).padStart(4, '0');

/** @returns {string} Text in which control characters and those that turn the direction of writing are visible. */
export function plain(/** @type {unknown} */ value) {
	return String(value).replace(UNSEEN, (mark) => {
		const code = mark.codePointAt(0) ?? 0;
		return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨U+${hex(code).toUpperCase()}⟩`;
	});
}

/** Text from outside, isolated from what stands around it; no more than so many characters of it. */
export function text(/** @type {unknown} */ value, most = 200) {
	if (value == null || value === '') return html`<span class="dim">–</span>`;
	const whole = plain(value);
	const cut = whole.length > most;
	return html`<bdi title=${cut ? whole.slice(0, 2_000) : nothing}>${cut ? `${whole.slice(0, most)}…` : whole}</bdi>`;
}

/** @typedef {import('./openapi.js').StatisticsPoint} Point */
/** @typedef {readonly {name: string, points: readonly (readonly [number, number | null])[]}[]} Series */

/** @returns {Series} Lines over time, by their names. */
export const series = (
	/** @type {Point[]} */ data,
	/** @type {Record<string, (point: Point) => number | undefined>} */ members,
) =>
	Object.entries(members).map(([name, of]) => ({
		name,
		points: data.map((point) => [millis(point.timestamp), of(point) ?? null]),
	}));

/** @returns {Series} How many jobs had not ended, counted back from now by what was pushed and what ended. */
export function backlog(/** @type {Point[]} */ data, /** @type {import('./openapi.js').Counts} */ now) {
	let there = now.scheduled + now.available + now.pending + now.active + now.retryable;
	const points = data.toReversed().map((point) => {
		const at = /** @type {const} */ ([millis(point.timestamp), Math.max(0, there)]);
		there += point.processed + point.failed + point.cancelled - point.enqueued;
		return at;
	});
	return [{ name: 'jobs', points: points.toReversed() }];
}
