/** Cron expressions in words. */

import { duration } from './format.js';

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const MONTHS = ' January February March April May June July August September October November December'.split(' ');

const ALIASES = /** @type {Record<string, string>} */ ({
	'@yearly': 'At 00:00 on day 1 in January',
	'@annually': 'At 00:00 on day 1 in January',
	'@monthly': 'At 00:00 on day 1',
	'@weekly': 'At 00:00 on Sunday',
	'@daily': 'Every day at 00:00',
	'@midnight': 'Every day at 00:00',
	'@hourly': 'Every hour',
});
const MS = /** @type {Record<string, number>} */ ({ ms: 1, s: 1_000, m: 60_000, h: 3_600_000 });

/** @returns {string} An interval in words; the expression where it is none. */
function every(/** @type {string} */ expression) {
	const parts = [...expression.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
	const ms = parts.reduce((sum, [, value, unit]) => sum + Number(value) * (MS[unit ?? ''] ?? 0), 0);
	return expression.startsWith('@every') && ms ? `Every ${duration(ms)}` : expression;
}

/** @returns {string} What an expression of five fields says; the expression where words would be longer. */
export function inWords(/** @type {string} */ expression) {
	const fields = expression.trim().split(/\s+/);
	if (expression.startsWith('@')) return ALIASES[expression.trim()] ?? every(expression);
	const [second = '0', ...others] = fields.length === 6 ? fields : ['0', ...fields];
	const steps = /^\*(?:\/(\d+))?$/.exec(second);
	if (steps && others.every((field) => field === '*'))
		return Number(steps[1] ?? 1) === 1 ? 'Every second' : `Every ${steps[1]} seconds`;
	if (!/^0+$/.test(second)) return expression; // words would be longer
	const [minute = '*', hour = '*', day = '*', month = '*', weekday = '*'] = others;
	const time = times(minute, hour);
	const days = [
		weekday === '*' ? '' : `on ${list(weekday, DAYS)}`,
		day === '*' ? '' : day === 'L' ? 'on the last day' : `on day ${day.replaceAll(',', ', ')}`,
	]
		.filter(Boolean)
		.join(' or ');
	const months = month === '*' ? '' : `in ${list(month, MONTHS)}`;
	const daily = /^at /.test(time) && !days ? 'every day ' : '';
	const text = [daily + time, days && `${days}`, months].filter(Boolean).join(' ');
	return text ? text[0]?.toUpperCase() + text.slice(1) : expression;
}

function times(/** @type {string} */ minute, /** @type {string} */ hour) {
	const step = /^\*\/(\d+)$/;
	if (minute === '*' && hour === '*') return 'every minute';
	const minutes = step.exec(minute);
	if (minutes && hour === '*') return `every ${minutes[1]} minutes`;
	const hours = step.exec(hour);
	if (hours && /^\d+$/.test(minute)) return `every ${hours[1]} hours${minute === '0' ? '' : ` at minute ${minute}`}`;
	if (hour === '*' && /^[\d,]+$/.test(minute))
		return minute === '0' ? 'every hour' : `every hour at minute ${minute.replaceAll(',', ', ')}`;
	if (/^\d+$/.test(minute) && /^[\d,]+$/.test(hour))
		return `at ${hour
			.split(',')
			.map((one) => `${one.padStart(2, '0')}:${minute.padStart(2, '0')}`)
			.join(', ')}`;
	return `at minute ${minute} of hour ${hour}`;
}

function list(/** @type {string} */ field, /** @type {readonly string[]} */ names) {
	const name = (/** @type {string} */ one) =>
		names[Number(one)] ??
		(/^[a-z]{3}$/i.test(one) ? (names.find((full) => full.toLowerCase().startsWith(one.toLowerCase())) ?? one) : one);
	if (names === DAYS && /^(1-5|mon-fri)$/i.test(field)) return 'weekdays';
	return field
		.split(',')
		.map((part) => part.split('-').map(name).join(' to '))
		.join(', ');
}
